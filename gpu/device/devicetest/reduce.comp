#include "common.glsl"

// out[group] = the sum of the group's WG words, by a tree in shared memory.

CONSTANT(0, WG, 64)
LOCAL_SIZE

STORAGE(0) readonly buffer Src { uint src[]; };
STORAGE(1) buffer Out { uint result[]; };

shared uint part[WG];

void main() {
	uint local = gl_LocalInvocationID.x;
	part[local] = src[gl_GlobalInvocationID.x];
	sync();
	for (uint n = WG / 2u; n > 0u; n /= 2u) {
		if (local < n) {
			part[local] += part[local + n];
		}
		sync();
	}
	if (local == 0u) {
		result[gl_WorkGroupID.x] = part[0];
	}
}
