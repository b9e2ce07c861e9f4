// IQ4_XS: nibbles that stand for levels; plane 1 has two words for each super-block, d
// and the 6-bit scales of its blocks, 32 more than they mean.
#define GROUP 32
struct Super { float d; uint high; uint low; };

Super superOf(uint tile, uint s) {
	uvec4 v = FETCH(weights, tile + p.plane1 + STRIP * (s >> 1));
	uvec2 w = (s & 1u) == 0u ? v.xy : v.zw;
	return Super(HALF_LOW(w.x), w.x >> 16, w.y);
}

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	uint i = b & 7u;
	d = vec2(s.d * float(int(((s.low >> (4u * i)) & 15u) | (((s.high >> (2u * i)) & 3u) << 4)) - 32));
	m = vec2(0.0);
}

#include "nibble_block.glsl"
#include "levels_iq4.glsl"
