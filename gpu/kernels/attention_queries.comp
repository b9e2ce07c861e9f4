#include "common.glsl"
#include "numerics.glsl"

// Queries as the variants of attention with texels fetch them: every head in whole units
// of eight columns, for an exact attention over halves as halves.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint heads;
	uint keyDim;
	uint halves; // 1: rounded to halves
	uint src; uint srcStride;
} p;

#include "act.glsl"
STORAGE(2) buffer Queries { uint queries[]; };

void main() {
	uint row = gl_WorkGroupID.y;
	uint at = gl_GlobalInvocationID.x;
	uint padded = (p.keyDim + 7u) / 8u * 8u;
	if (row >= batch[p.rows] || at >= p.heads * padded) return;
	uint d = at % padded;
	float x = 0.0;
	if (d < p.keyDim) x = load(p.src + row * p.srcStride + at / padded * p.keyDim + d);
	if (p.halves != 0u) x = roundHalf(x);
	queries[row * p.heads * padded + at] = floatBitsToUint(x);
}
