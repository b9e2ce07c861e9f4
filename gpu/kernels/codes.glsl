// Numbers of packed weights (gpu/compute/pack.go), four columns at a time, and what the
// formats' files share. A format says how it gets the numbers of a quad, and with LESS
// what a code is less than its number. They are int: converting uint to float takes
// several instructions where a machine has only signed conversions.

// The four bytes of a word, as they are or as two's complement. Dot products (dot4.glsl)
// take them as they lie, for which numbers below 128 are signed bytes as well.
#ifdef DOT4
#define Quad uint
uint bytes(uint v) { return v; }
uint signedBytes(uint v) { return v; }
#else
#define Quad ivec4
ivec4 bytes(uint v) {
	return ivec4(int(v & 255u), int((v >> 8) & 255u), int((v >> 16) & 255u), int(v >> 24));
}
ivec4 signedBytes(uint v) {
	return ivec4(int(v << 24) >> 24, int(v << 16) >> 24, int(v << 8) >> 24, int(v) >> 24);
}
#endif

// Quad i (0 or 1) of a word of nibbles, as bytes.
uint nibbles(uint v, uint i) { return (v >> (4u * i)) & 0x0F0F0F0Fu; }
ivec4 signedNibbles(uint v, uint i) {
	return i == 0u ? ivec4(int(v << 28) >> 28, int(v << 20) >> 28, int(v << 12) >> 28, int(v << 4) >> 28)
	               : ivec4(int(v << 24) >> 28, int(v << 16) >> 28, int(v << 8) >> 28, int(v) >> 28);
}
// Quad i (0…3) of a word of bit pairs, as bytes, at bits 0 or 4.
uint pairsLow(uint v, uint i) { return (v >> (2u * i)) & 0x03030303u; }
uint pairsHigh(uint v, uint i) { return (i < 2u ? v << (4u - 2u * i) : v >> (2u * i - 4u)) & 0x30303030u; }
// Quad i (0…7) of a word of bits, as bytes, at bit 4 or bit 2.
uint bitsFour(uint v, uint i) { return (i < 4u ? v << (4u - i) : v >> (i - 4u)) & 0x10101010u; }
uint bitsTwo(uint v, uint i) { return (i < 2u ? v << (2u - i) : v >> (i - 2u)) & 0x04040404u; }

#ifdef EXACT
#define HALF_LOW(w) halfToFloat((w) & 0xFFFFu)
#define HALF_HIGH(w) halfToFloat((w) >> 16)
#else
#define HALF_LOW(w) unpackHalf2x16(w).x
#define HALF_HIGH(w) unpackHalf2x16(w).y
#endif

// The codes of a quad.
#define codes(k, quad) (vec4(numbers(k, quad)) - float(LESS))
