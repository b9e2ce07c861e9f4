#include "common.glsl"

// out[invocation] = 1 + x + 1000·y + 1000000·z + local, invocations counted through the
// grid of workgroups: each workgroup of the three axes runs once.

CONSTANT(0, WG, 4)
LOCAL_SIZE

PARAMS uniform Params { uint width; uint height; } p;
STORAGE(0) buffer Out { uint result[]; };

void main() {
	uvec3 g = gl_WorkGroupID;
	uint at = (g.z * p.height + g.y) * p.width + g.x;
	uint local = gl_LocalInvocationID.x;
	result[at * WG + local] += 1u + g.x + 1000u * g.y + 1000000u * g.z + local;
}
