#include "common.glsl"

// out[i] = x[i]·y[i] + z[i] in two roundings.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint count; } p;
STORAGE(0) readonly buffer Src { uint src[]; }; // x, y, z in turns
STORAGE(1) buffer Out { uint result[]; };

void main() {
	uint i = gl_GlobalInvocationID.x;
	if (i < p.count) {
		PRECISE float product = uintBitsToFloat(src[3u * i]) * uintBitsToFloat(src[3u * i + 1u]);
		PRECISE float sum = product + uintBitsToFloat(src[3u * i + 2u]);
		result[i] = floatBitsToUint(sum);
	}
}
