// Q8_0: signed bytes; plane 1 has a half d for each block.
#define GROUP 32
#define HALVES p.plane1
#include "halves_super.glsl"
#include "byte_block.glsl"
