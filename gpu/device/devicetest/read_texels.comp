#include "common.glsl"

// Reads a buffer once by texel fetches, neighbours in neighbouring invocations,
// and keeps a sum per invocation: the streaming read that kernels are compared with.
// Each workgroup reads a block of WG·LOADS texels.

CONSTANT(0, WG, 64)
CONSTANT(1, LOADS, 16)
LOCAL_SIZE

TEXELS(0) uniform usamplerBuffer src;
STORAGE(1) buffer Out { uint result[]; };

void main() {
	uint at = gl_WorkGroupID.x * (WG * LOADS) + gl_LocalInvocationID.x;
	uvec4 sum = uvec4(0u);
	for (uint n = 0u; n < LOADS; n++) {
		sum ^= texelFetch(src, int(at + n * WG));
	}
	result[gl_GlobalInvocationID.x] = sum.x + sum.y + sum.z + sum.w;
}
