// The way from a branch to the next product in one dispatch: of a row
//
//	y   = RMSNorm(x)        with BRANCH, the branch's own norm
//	sum = y + residual      with ADD
//	out = RMSNorm(sum)      with NEXT
//
// and with WHOLE the last of them once more as whole numbers (whole.glsl). Each result is
// also stored where the operation of the plan has its output, and each is rounded as by
// the kernels of the operations apart (norm.glsl, binary.comp, quantize.glsl), so that the
// bits are the same.
//
// A workgroup has a row and keeps it in shared memory, which bounds its width. Behind
// every 32 columns one is left out, so that blocks do not all begin in one bank.

CONSTANT(0, WG, 64)
CONSTANT(1, COLS, 32)  // of a row, at least
CONSTANT(2, BRANCH, 0) // 1: normalise, 2: and multiply with first
CONSTANT(3, ADD, 0)
CONSTANT(4, NEXT, 0)   // 1: normalise, 2: and multiply with second
CONSTANT(5, WHOLE, 0)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint cols;
	uint src; uint srcStride;
	uint branch; uint branchStride;
	uint residual; uint residualStride;
	uint sum; uint sumStride;
	uint dst; uint dstStride;
	uint whole; uint wholeStride; // in texels
	float branchEps; float eps; float inverse; // inverse = 1/cols
} p;
STORAGE(2) readonly buffer First { uint first[]; };
STORAGE(3) readonly buffer Second { uint second[]; };
STORAGE(4) buffer Out { uvec4 outs[]; };
#include "whole.glsl"

#define AT(i) ((i) + (i) / 32u)
shared float values[COLS + COLS / 32u + 1u];

#include "fold.glsl"

// scaleOf is what RMSNorm multiplies the row in shared memory with; the row is complete
// for all invocations afterwards, and before it for none but their own columns.
float scaleOf(float eps) {
	uint id = gl_LocalInvocationID.x;
	sync();
	PRECISE float sum = 0.0;
	PRECISE float x;
	PRECISE float square;
	for (uint i = id; i < (id < ADDERS ? p.cols : 0u); i += ADDERS) {
		x = values[AT(i)];
		square = x * x;
		sum = sum + square;
	}
	PRECISE float total = fold(sum) * p.inverse;
	PRECISE float guarded = total + eps;
	return Rsqrt(guarded);
}

void main() {
	uint row = gl_WorkGroupID.y;
	uint id = gl_LocalInvocationID.x;
	if (row >= batch[p.rows]) return; // the same for the whole workgroup
	PRECISE float y;
	for (uint i = id; i < p.cols; i += WG) values[AT(i)] = load(p.src + row * p.srcStride + i);
	if (BRANCH != 0u) {
		float r = scaleOf(p.branchEps);
		for (uint i = id; i < p.cols; i += WG) {
			y = values[AT(i)] * r;
			if (BRANCH == 2u) y = y * uintBitsToFloat(first[i]);
			values[AT(i)] = y;
			store(p.branch + row * p.branchStride + i, y);
		}
	}
	if (ADD != 0u) {
		for (uint i = id; i < p.cols; i += WG) {
			y = values[AT(i)] + load(p.residual + row * p.residualStride + i);
			values[AT(i)] = y;
			store(p.sum + row * p.sumStride + i, y);
		}
	}
	if (NEXT != 0u) {
		float r = scaleOf(p.eps);
		for (uint i = id; i < p.cols; i += WG) {
			y = values[AT(i)] * r;
			if (NEXT == 2u) y = y * uintBitsToFloat(second[i]);
			values[AT(i)] = y;
			store(p.dst + row * p.dstStride + i, y);
		}
	}
	if (WHOLE != 0u) {
		sync();
		for (uint b = id; b < p.cols / 32u; b += WG) {
			uint bits[32];
			for (uint i = 0u; i < 32u; i++) bits[i] = floatBitsToUint(values[33u * b + i]);
			putWhole(bits, p.whole + row * p.wholeStride + b * (XTEXELS + 1u));
		}
	}
}
