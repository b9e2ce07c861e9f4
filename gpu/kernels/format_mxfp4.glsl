// MXFP4: nibbles that stand for twice a number E2M1; plane 1 has a byte E8M0 for each
// block, half of which is the scale. Products take scales below 2⁻⁴⁵ for zero
// (gpu/DESIGN.md, rule 2).
#define GROUP 32
#define LEVELS0 0x03020100u
#define LEVELS1 0x0C080604u
#define LEVELS2 0xFDFEFF00u
#define LEVELS3 0xF4F8FAFCu
#ifndef SMALLEST
#define SMALLEST 83u
#endif
struct Super { uvec2 e; };

Super superOf(uint tile, uint s) {
	uvec4 v = FETCH(weights, tile + p.plane1 + STRIP * (s >> 1));
	return Super((s & 1u) == 0u ? v.xy : v.zw);
}

// 2^(e−128): half of the scale.
float halfE8M0(uint e) {
	if (e < SMALLEST) return 0.0;
	return uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23);
}

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	uint w = ((b & 4u) == 0u ? s.e.x : s.e.y) >> (8u * (b & 3u));
	d = vec2(halfE8M0(w & 255u));
	m = vec2(0.0);
}

#include "nibble_block.glsl"
#include "levels.glsl"
