#include "common.glsl"

// out[i] is parameter i: a parameter block of 128 bytes arrives whole.

CONSTANT(0, WG, 32)
LOCAL_SIZE

PARAMS uniform Params {
	uint w00; uint w01; uint w02; uint w03; uint w04; uint w05; uint w06; uint w07;
	uint w08; uint w09; uint w10; uint w11; uint w12; uint w13; uint w14; uint w15;
	uint w16; uint w17; uint w18; uint w19; uint w20; uint w21; uint w22; uint w23;
	uint w24; uint w25; uint w26; uint w27; uint w28; uint w29; uint w30; float w31;
} p;
STORAGE(0) buffer Out { uint result[]; };

void main() {
	if (gl_GlobalInvocationID.x != 0u) {
		return;
	}
	result[0] = p.w00; result[1] = p.w01; result[2] = p.w02; result[3] = p.w03;
	result[4] = p.w04; result[5] = p.w05; result[6] = p.w06; result[7] = p.w07;
	result[8] = p.w08; result[9] = p.w09; result[10] = p.w10; result[11] = p.w11;
	result[12] = p.w12; result[13] = p.w13; result[14] = p.w14; result[15] = p.w15;
	result[16] = p.w16; result[17] = p.w17; result[18] = p.w18; result[19] = p.w19;
	result[20] = p.w20; result[21] = p.w21; result[22] = p.w22; result[23] = p.w23;
	result[24] = p.w24; result[25] = p.w25; result[26] = p.w26; result[27] = p.w27;
	result[28] = p.w28; result[29] = p.w29; result[30] = p.w30; result[31] = floatBitsToUint(p.w31);
}
