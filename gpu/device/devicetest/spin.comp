#include "common.glsl"

// out[i] = i passed rounds times through a generator: a command that takes long.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint rounds; } p;
STORAGE(0) buffer Out { uint result[]; };

void main() {
	uint x = gl_GlobalInvocationID.x;
	for (uint n = 0u; n < p.rounds; n++) {
		x = x * 1664525u + (x >> 16u) + 1013904223u;
	}
	result[gl_GlobalInvocationID.x] = x;
}
