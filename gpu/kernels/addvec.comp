#include "common.glsl"
#include "act.glsl"

// AddVec: out = in + w or in · w with w repeated over the columns; columns in x, rows in
// y, one element per invocation. One rounding each, so it serves both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, MUL, 0)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint wWidth;
	uint src; uint srcStride;
	uint dst; uint dstStride;
} p;
STORAGE(2) readonly buffer Vec { uint vec[]; };

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	PRECISE float x = load(p.src + row * p.srcStride + col);
	PRECISE float w = uintBitsToFloat(vec[col % p.wWidth]);
	PRECISE float y = MUL != 0u ? x * w : x + w;
	store(p.dst + row * p.dstStride + col, y);
}
