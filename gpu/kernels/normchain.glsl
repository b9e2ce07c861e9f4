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
STORAGE(2) readonly buffer First { uint firsts[]; };
STORAGE(3) readonly buffer Second { uint seconds[]; };
STORAGE(4) buffer Out { uvec4 outs[]; };
#define FIRST(i) firsts[i]
#define SECOND(i) seconds[i]
#define STORE_ALL
#include "chain.glsl"

void main() {
	uint row = gl_WorkGroupID.y;
	if (row >= batch[p.rows]) return; // the same for the whole workgroup
	chain(row, p.cols, p.src + row * p.srcStride);
}
