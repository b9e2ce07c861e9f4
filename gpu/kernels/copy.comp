#include "common.glsl"

// Copies words: dst[to+i] = src[from+i] for i < count. A page of a cache is a run of
// words of each buffer. The work is divided among all workgroups in strides, so that
// any number of words fits any grid.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint count; uint from; uint to; } p;
STORAGE(0) readonly buffer Src { uint src[]; };
STORAGE(1) buffer Dst { uint dst[]; };

void main() {
	uint step = gl_NumWorkGroups.x * WG;
	for (uint i = gl_GlobalInvocationID.x; i < p.count; i += step) {
		dst[p.to + i] = src[p.from + i];
	}
}
