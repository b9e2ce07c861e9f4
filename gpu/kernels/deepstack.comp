#include "common.glsl"
#include "act.glsl"

// Deepstack: out = in + a slice of the batch's embeddings for rows without a token; rows
// of text are copied with their bits. Columns in x, rows in y, one element per invocation.
// One rounding, so it serves both modes.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint tokens; // word of the batch at which the tokens of the rows begin
	uint outs;   // likewise which row of embeds a row has; 0: its own
	uint slice;  // element of embeds at which the slice of row 0 begins
	uint src; uint srcStride;
	uint dst; uint dstStride;
} p;
STORAGE(2) readonly buffer Embeds { uint embeds[]; }; // [slices][rows][width]

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	uint x = act[p.src + row * p.srcStride + col];
	if (int(batch[p.tokens + row]) < 0) {
		uint of = p.outs == 0u ? row : batch[p.outs + row];
		PRECISE float y = uintBitsToFloat(x) + uintBitsToFloat(embeds[p.slice + of * p.width + col]);
		x = floatBitsToUint(y);
	}
	act[p.dst + row * p.dstStride + col] = x;
}
