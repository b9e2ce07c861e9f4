// Q2_K: bit pairs; plane 1 has four bits of a scale and of a minimum for each group of
// 16, plane 2 a word for each super-block, d and dmin.
#define GROUP 16
#define MINIMA
struct Super { float d; float m; uvec4 bits; };
struct Block { uvec2 q; };

Super superOf(uint tile, uint s) {
	uint w = word(FETCH(weights, tile + p.plane2 + STRIP * (s >> 2)), s & 3u);
	return Super(HALF_LOW(w), HALF_HIGH(w), FETCH(weights, tile + p.plane1 + STRIP * s));
}

Block blockOf(uint tile, uint b) {
	uvec4 q = FETCH(weights, tile + STRIP * (b >> 1));
	return Block((b & 1u) == 0u ? q.xy : q.zw);
}

#define LESS 0
Quad numbers(Block k, uint quad) { return bytes(pairsLow(quad < 4u ? k.q.x : k.q.y, quad & 3u)); }

void scalesOf(Super s, uint b, uint tile, out vec2 d, out vec2 m) {
	uint sc = ((b & 4u) == 0u ? s.bits.x : s.bits.y) >> (8u * (b & 3u));
	uint mn = ((b & 4u) == 0u ? s.bits.z : s.bits.w) >> (8u * (b & 3u));
	d = s.d * vec2(ivec2(int(sc & 15u), int((sc >> 4) & 15u)));
	m = -(s.m * vec2(ivec2(int(mn & 15u), int((mn >> 4) & 15u))));
}
