#include "common.glsl"
#include "act.glsl"

// Binary: out = a + b or a · b with b repeated over the columns of a; columns in x, rows
// in y, one element per invocation. One rounding each, so it serves both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, MUL, 0)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint bWidth;
	uint a; uint aStride;
	uint b; uint bStride;
	uint dst; uint dstStride;
} p;

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	PRECISE float a = load(p.a + row * p.aStride + col);
	PRECISE float b = load(p.b + row * p.bStride + col % p.bWidth);
	PRECISE float y = MUL != 0u ? a * b : a + b;
	store(p.dst + row * p.dstStride + col, y);
}
