// Q3_K: 3-bit numbers, 4 more than the code: bit pairs, and plane 1 with the third bits.
// Plane 2 has the 6-bit scales, 32 more than they mean, of the groups of 16, and d.
#define GROUP 16
struct Super { float d; uvec3 bits; };
struct Block { uvec2 q; uint high; };

Super superOf(uint tile, uint s) {
	uvec4 v = FETCH(weights, tile + p.plane2 + STRIP * s);
	return Super(HALF_LOW(v.w), v.xyz);
}

Block blockOf(uint tile, uint b) {
	uvec4 q = FETCH(weights, tile + STRIP * (b >> 1));
	return Block((b & 1u) == 0u ? q.xy : q.zw, word(FETCH(weights, tile + p.plane1 + STRIP * (b >> 2)), b & 3u));
}

#define LESS 4
Quad numbers(Block k, uint quad) {
	return bytes(pairsLow(quad < 4u ? k.q.x : k.q.y, quad & 3u) | bitsTwo(k.high, quad));
}

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	uint low = ((b & 4u) == 0u ? s.bits.x : s.bits.y) >> (8u * (b & 3u));
	uint high = s.bits.z >> (4u * (b & 7u));
	d = s.d * vec2(ivec2(int((low & 15u) | ((high & 3u) << 4)) - 32, int(((low >> 4) & 15u) | (((high >> 2) & 3u) << 4)) - 32));
	m = vec2(0.0);
}
