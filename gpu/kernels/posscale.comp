#include "common.glsl"
#include "act.glsl"

// PosScale multiplies a row by the host's factor for its position, which stands in the
// batch; columns in x, rows in y, one element per invocation. It serves both modes.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint factors; // word of the batch at which the factors of the rows begin
	uint src; uint srcStride;
	uint dst; uint dstStride;
} p;

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	PRECISE float y = load(p.src + row * p.srcStride + col) * uintBitsToFloat(batch[p.factors + row]);
	store(p.dst + row * p.dstStride + col, y);
}
