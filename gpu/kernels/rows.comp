#include "common.glsl"

// Rows picks output rows: out[i] = in[outs[i]], columns in x, outputs in y. It is the one
// operation over both row sets, so it binds both arenas, and it moves words, for rows may
// hold integers.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of outputs
	uint width;
	uint outs; // word of the batch at which the rows of the outputs begin
	uint src; uint srcStride;
	uint dst; uint dstStride;
} p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Rows { uint rows[]; };
STORAGE(2) buffer Outs { uint outs[]; };

void main() {
	uint i = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (i >= batch[p.rows] || col >= p.width) return;
	outs[p.dst + i * p.dstStride + col] = rows[p.src + batch[p.outs + i] * p.srcStride + col];
}
