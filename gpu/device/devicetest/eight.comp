#include "common.glsl"

// out[i] = Σ (n+1)·in_n[i]: eight bindings, each at its place.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint count; } p;
STORAGE(0) readonly buffer In0 { uint in0[]; };
STORAGE(1) readonly buffer In1 { uint in1[]; };
STORAGE(2) readonly buffer In2 { uint in2[]; };
STORAGE(3) readonly buffer In3 { uint in3[]; };
STORAGE(4) readonly buffer In4 { uint in4[]; };
STORAGE(5) readonly buffer In5 { uint in5[]; };
STORAGE(6) readonly buffer In6 { uint in6[]; };
STORAGE(7) buffer Out { uint result[]; };

void main() {
	uint i = gl_GlobalInvocationID.x;
	if (i < p.count) {
		result[i] = in0[i] + 2u * in1[i] + 3u * in2[i] + 4u * in3[i] + 5u * in4[i] + 6u * in5[i] + 7u * in6[i];
	}
}
