// Codes of a quad of nibbles that stand for 16 levels, signed bytes in four words.
int level(uint i) {
	uint low = (i & 4u) == 0u ? LEVELS0 : LEVELS1;
	uint high = (i & 4u) == 0u ? LEVELS2 : LEVELS3;
	return int((i < 8u ? low : high) << (24u - 8u * (i & 3u))) >> 24;
}

#define LESS 0
Quad numbers(Block k, uint quad) {
	uint v = nibbles(word(k.q, quad >> 1), quad & 1u);
	return ivec4(level(v & 15u), level((v >> 8) & 15u), level((v >> 16) & 15u), level(v >> 24));
}
