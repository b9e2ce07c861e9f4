// Q6_K: 6-bit numbers, 32 more than the code: nibbles, and plane 1 with the high bits.
// Plane 2 has a signed byte for each group of 16, plane 3 a half d for each super-block.
#define GROUP 16
struct Super { float d; uvec4 groups; };
struct Block { uvec4 q; uvec2 high; };

Super superOf(uint tile, uint s) {
	uint w = word(FETCH(weights, tile + p.plane3 + STRIP * (s >> 3)), (s >> 1) & 3u);
	return Super(HALF_LOW((s & 1u) == 0u ? w : w >> 16), FETCH(weights, tile + p.plane2 + STRIP * s));
}

Block blockOf(uint tile, uint b) {
	uvec4 h = FETCH(weights, tile + p.plane1 + STRIP * (b >> 1));
	return Block(FETCH(weights, tile + STRIP * b), (b & 1u) == 0u ? h.xy : h.zw);
}

#define LESS 32
Quad numbers(Block k, uint quad) {
	uint low = nibbles(word(k.q, quad >> 1), quad & 1u);
	return bytes(low | pairsHigh(quad < 4u ? k.high.x : k.high.y, quad & 3u));
}

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	uint w = word(s.groups, (b >> 1) & 3u) << (16u - 16u * (b & 1u));
	d = s.d * vec2(ivec2(int(w << 8) >> 24, int(w) >> 24));
	m = vec2(0.0);
}
