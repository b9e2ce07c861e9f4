#include "common.glsl"

// dst[i] = 3·src[(i + by) mod count] + 1: a step of a chain in which each workgroup
// needs what another one wrote in the step before.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint count; uint by; } p;
STORAGE(0) readonly buffer Src { uint src[]; };
STORAGE(1) buffer Dst { uint dst[]; };

void main() {
	uint i = gl_GlobalInvocationID.x;
	if (i < p.count) {
		dst[i] = 3u * src[(i + p.by) % p.count] + 1u;
	}
}
