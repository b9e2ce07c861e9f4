// Q4_0: signed nibbles; plane 1 has a half d for each block.
#define GROUP 32
#define HALVES p.plane1
#include "halves_super.glsl"
#include "nibble_block.glsl"

#ifdef DOT4 // 8 more than the code
#define LESS 8
uint numbers(Block k, uint quad) { return nibbles(word(k.q, quad >> 1), quad & 1u) ^ 0x08080808u; }
#else
#define LESS 0
ivec4 numbers(Block k, uint quad) { return signedNibbles(word(k.q, quad >> 1), quad & 1u); }
#endif
