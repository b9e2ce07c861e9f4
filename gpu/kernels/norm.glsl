// RMSNorm, LayerNorm and L2Norm over groups of columns (rule 3 of gpu/DESIGN.md); the
// including kernel defines one of NORM_RMS, NORM_LAYER and NORM_L2. Groups in x, rows in
// y: a workgroup has one group of one row. The sums are those of fold.glsl; all invocations
// multiply.
//
// A second pass over the row reads it again: rows are a few KiB and stay in the cache,
// and a copy in shared memory would bound their width.

CONSTANT(0, WG, 64)
CONSTANT(1, WEIGHT, 0)
CONSTANT(2, BIAS, 0)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint group; // columns
	uint src; uint srcStride;
	uint dst; uint dstStride;
	uint wStep; uint bStep; // from group to group, 0 where all use the same weights
	float eps; float inverse; // inverse = 1/group
} p;
STORAGE(2) readonly buffer Weight { uint weight[]; };
#ifdef NORM_LAYER
STORAGE(3) readonly buffer Bias { uint bias[]; };
#endif

#include "fold.glsl"

void main() {
	uint row = gl_WorkGroupID.y;
	uint id = gl_LocalInvocationID.x;
	uint group = gl_WorkGroupID.x;
	if (row >= batch[p.rows]) return; // the same for the whole workgroup
	uint src = p.src + row * p.srcStride + group * p.group;
	uint dst = p.dst + row * p.dstStride + group * p.group;
	uint end = id < ADDERS ? p.group : 0u;

	PRECISE float mean = 0.0;
	PRECISE float sum = 0.0;
	PRECISE float x;
	PRECISE float square;
#ifdef NORM_LAYER
	for (uint i = id; i < end; i += ADDERS) {
		x = load(src + i);
		sum = sum + x;
	}
	mean = fold(sum) * p.inverse;
	sum = 0.0;
	sync(); // the lanes are free again
#endif
	for (uint i = id; i < end; i += ADDERS) {
		x = load(src + i);
#ifdef NORM_LAYER
		x = x - mean;
#endif
		square = x * x;
		sum = sum + square;
	}
	PRECISE float total = fold(sum);
#ifndef NORM_L2
	total = total * p.inverse;
#endif
	PRECISE float guarded = total + p.eps;
	float r = Rsqrt(guarded);

	for (uint i = id; i < p.group; i += WG) {
		x = load(src + i);
#ifdef NORM_LAYER
		x = x - mean;
#endif
		PRECISE float y = x * r;
		if (WEIGHT != 0u) y = y * uintBitsToFloat(weight[group * p.wStep + i]);
#ifdef NORM_LAYER
		if (BIAS != 0u) y = y + uintBitsToFloat(bias[group * p.bStep + i]);
#endif
		store(dst + i, y);
	}
}
