// IQ4_NL: nibbles that stand for levels; plane 1 has a half d for each block.
#define GROUP 32
#define HALVES p.plane1
#include "halves_super.glsl"
#include "nibble_block.glsl"
#include "levels_iq4.glsl"
