// Q5_K: 5-bit codes; plane 2 has the scales and minima.
#define GROUP 32
#define SCALES p.plane2
#include "k_super.glsl"
#include "five_block.glsl"

#define LESS 0
Quad numbers(Block k, uint quad) { return bytes(stored(k, quad)); }
