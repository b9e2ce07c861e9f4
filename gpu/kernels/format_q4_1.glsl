// Q4_1: nibbles; plane 1 has a word for each block, d and m.
#define GROUP 32
#define WORDS p.plane1
#include "halves_min.glsl"
#include "nibble_block.glsl"

#define LESS 0
Quad numbers(Block k, uint quad) { return bytes(nibbles(word(k.q, quad >> 1), quad & 1u)); }
