// A block of signed bytes.
struct Block { uvec4 q0; uvec4 q1; };

Block blockOf(uint tile, uint b) {
	uint at = tile + 2u * STRIP * b;
	return Block(FETCH(weights, at), FETCH(weights, at + STRIP));
}

#ifdef TEXEL // LLVM multiplies well what it knows to be positive
#define LESS 128
Quad numbers(Block k, uint quad) { return bytes(word(quad < 4u ? k.q0 : k.q1, quad & 3u) ^ 0x80808080u); }
#else
#define LESS 0
Quad numbers(Block k, uint quad) { return signedBytes(word(quad < 4u ? k.q0 : k.q1, quad & 3u)); }
#endif
