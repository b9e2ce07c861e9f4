// A block of signed bytes.
struct Block { uvec4 q0; uvec4 q1; };

Block blockOf(uint tile, uint b) {
	uint at = tile + 2u * STRIP * b;
	return Block(FETCH(weights, at), FETCH(weights, at + STRIP));
}

vec4 codes(Block k, uint quad) { return signedBytes(word(quad < 4u ? k.q0 : k.q1, quad & 3u)); }
