#include "common.glsl"
#include "act.glsl"

// Scale: out = in · factor + offset, then within ±clamp where clamp is above 0; columns
// in x, rows in y, one element per invocation. It serves both modes. Limits are written
// as comparisons, which leave NaN as it is.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint src; uint srcStride;
	uint dst; uint dstStride;
	float factor; float offset; float clamp;
} p;

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	PRECISE float x = load(p.src + row * p.srcStride + col);
	PRECISE float product = x * p.factor;
	PRECISE float y = product + p.offset;
	if (p.clamp > 0.0) {
		if (y < -p.clamp) y = -p.clamp;
		if (y > p.clamp) y = p.clamp;
	}
	store(p.dst + row * p.dstStride + col, y);
}
