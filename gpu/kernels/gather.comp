#include "common.glsl"

// Gather puts units of other rows together (ops.Gather): columns in x, rows of the output
// in y, one element per invocation. Numbers of units stand in the batch, row after row of
// the output; −1 is a unit of zeros. One term is copied as the word it is, several are
// added from +0 in the list's order. It serves both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, TERMS, 1)
CONSTANT(2, MEAN, 0)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows of the output
	uint width;
	uint list; // word of the batch at which the list begins
	uint unit, units; // columns of a unit, units of a row of the input
	float inverse; // 1/TERMS
	uint src; uint srcStride;
	uint dst; uint dstStride;
} p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Rows { uint rows[]; };
STORAGE(2) buffer Outs { uint outs[]; };

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	uint at = p.list + (row * (p.width / p.unit) + col / p.unit) * uint(TERMS);
	uint inside = col % p.unit;
	uint y = 0u;
	float sum = 0.0;
	for (uint t = 0u; t < uint(TERMS); t++) {
		uint from = batch[at + t];
		if (from == 0xFFFFFFFFu) continue;
		uint x = rows[p.src + from / p.units * p.srcStride + from % p.units * p.unit + inside];
		if (TERMS == 1u) y = x;
		else sum += uintBitsToFloat(x);
	}
	if (TERMS > 1u) {
		PRECISE float mean = sum * p.inverse;
		y = floatBitsToUint(MEAN != 0u ? mean : sum);
	}
	outs[p.dst + row * p.dstStride + col] = y;
}
