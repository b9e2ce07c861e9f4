// Codes of a quad of nibbles that stand for 16 levels, signed bytes in four words.
float level(uint i) {
	uint low = (i & 4u) == 0u ? LEVELS0 : LEVELS1;
	uint high = (i & 4u) == 0u ? LEVELS2 : LEVELS3;
	return float(int((i < 8u ? low : high) << (24u - 8u * (i & 3u))) >> 24);
}

vec4 codes(Block k, uint quad) {
	uint v = nibbles(word(k.q, quad >> 1), quad & 1u);
	return vec4(level(v & 15u), level((v >> 8) & 15u), level((v >> 16) & 15u), level(v >> 24));
}
