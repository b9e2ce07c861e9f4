// Q5_0: 5-bit numbers, 16 more than the code; plane 2 has a half d for each block.
#define GROUP 32
#define HALVES p.plane2
#include "halves_super.glsl"
#include "five_block.glsl"

#define LESS 16
Quad numbers(Block k, uint quad) { return bytes(stored(k, quad)); }
