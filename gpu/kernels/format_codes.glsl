// Signed bytes and, in plane 1, a float for each group of 16: the types that have no
// kernel of their own (tensor.Codes).
#define GROUP 16
struct Super { uint none; };

Super superOf(uint tile, uint s) { return Super(0u); }

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	vec4 v = uintBitsToFloat(FETCH(weights, tile + p.plane1 + STRIP * (b >> 1)));
	d = (b & 1u) == 0u ? v.xy : v.zw;
	m = vec2(0.0);
}

#include "byte_block.glsl"
