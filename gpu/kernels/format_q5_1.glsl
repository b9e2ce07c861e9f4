// Q5_1: 5-bit codes; plane 2 has a word for each block, d and m.
#define GROUP 32
#define WORDS p.plane2
#include "halves_min.glsl"
#include "five_block.glsl"

#define LESS 0
Quad numbers(Block k, uint quad) { return bytes(stored(k, quad)); }
