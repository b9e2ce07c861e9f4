// Rows of activations as whole numbers, for products with packed matrices of whole
// numbers (matmul.glsl): x[i] is about scale·X[i], the scale a power of two for each
// block of 32 columns. This is RoundBlock of gpu/ops/whole.go; fast mode keeps 13 bits,
// so that sums of products with bytes are exact in float32.
//
// A block becomes XTEXELS texels of numbers and a texel of floats: the scale, the sum of
// the numbers, and the sums of their halves. A number of fast mode is half a word, one of
// exact mode a word, 4096·H + L as H above and L below. Columns beyond the last count as
// zeros.
//
// An invocation has a block. A row can be several inputs side by side (experts), each of
// which becomes a row.
CONSTANT(0, WG, 32)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint src; uint srcStride;
	uint cols; uint parts; // columns of an input, inputs of a row
	uint blocks;           // of an input
	uint dst; uint dstStride; // in texels
} p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) buffer Out { uvec4 outs[]; };

#include "whole.glsl"

void main() {
	uint b = gl_GlobalInvocationID.x;
	uint row = gl_WorkGroupID.y / p.parts;
	uint input_ = gl_WorkGroupID.y % p.parts;
	if (row >= batch[p.rows] || b >= p.blocks) return;
	uint src = p.src + row * p.srcStride + input_ * p.cols + 32u * b;
	uint n = min(32u, p.cols - 32u * b);
	uint bits[32];
	for (uint i = 0u; i < 32u; i++) bits[i] = i < n ? act[src + i] : 0u;
	putWhole(bits, p.dst + gl_WorkGroupID.y * p.dstStride + b * (XTEXELS + 1u));
}
