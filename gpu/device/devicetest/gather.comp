#include "common.glsl"

// dst[to] += Σ src[0…count): all of what earlier commands wrote side by side.

CONSTANT(0, WG, 1)
LOCAL_SIZE

PARAMS uniform Params { uint count; uint to; } p;
STORAGE(0) readonly buffer Src { uint src[]; };
STORAGE(1) buffer Dst { uint dst[]; };

void main() {
	uint sum = dst[p.to];
	for (uint i = 0u; i < p.count; i++) {
		sum += src[i];
	}
	dst[p.to] = sum;
}
