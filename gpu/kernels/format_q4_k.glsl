// Q4_K: nibbles; plane 1 has the scales and minima.
#define GROUP 32
#define SCALES p.plane1
#include "k_super.glsl"
#include "nibble_block.glsl"

#define LESS 0
Quad numbers(Block k, uint quad) { return bytes(nibbles(word(k.q, quad >> 1), quad & 1u)); }
