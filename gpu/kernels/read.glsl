// Reads a buffer once and does next to nothing with it: the streaming read that the rates
// of kernels are compared with (gpu/probe, ReadRate). Neighbouring invocations read
// neighbouring texels; a workgroup reads WG·LOADS of them, and each invocation leaves the
// exclusive or of what it read, so that no compiler can leave a read out.

CONSTANT(0, WG, 64)
CONSTANT(1, LOADS, 16)
LOCAL_SIZE

FETCHED(0, Src, src)
STORAGE(1) buffer Out { uint result[]; };

void main() {
	uint at = gl_WorkGroupID.x * (WG * LOADS) + gl_LocalInvocationID.x;
	uvec4 sum = uvec4(0u);
	for (uint n = 0u; n < LOADS; n++) sum ^= FETCH(src, at + n * WG);
	result[gl_GlobalInvocationID.x] = sum.x ^ sum.y ^ sum.z ^ sum.w;
}
