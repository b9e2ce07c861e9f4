#include "common.glsl"

// out[i] = (base + i)·SCALE + SHIFT for i < count: constants and parameters arrive.

CONSTANT(0, WG, 64)
CONSTANT(1, SCALE, 3)
CONSTANT(2, SHIFT, 5)
LOCAL_SIZE

PARAMS uniform Params { uint count; uint base; } p;
STORAGE(0) buffer Out { uint result[]; };

void main() {
	uint i = gl_GlobalInvocationID.x;
	if (i < p.count) {
		result[i] = (p.base + i) * SCALE + SHIFT;
	}
}
