#include "common.glsl"
#include "act.glsl"

// RoPE turns pairs of columns of every head by the angle of the row's position:
// a' = a·cos − b·sin, b' = a·sin + b·cos (rule 4), with AXES by that of the row's position
// on the pair's axis. Pairs are neighbours or, with NEOX,
// columns half a rotation apart. Rows in y; in x the invocations of a row, one for each
// pair and then one for each column that is copied, so that an operation in place reads
// nothing that another invocation writes. It serves both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, NEOX, 0)
CONSTANT(2, AXES, 0) // 1: pairs have axes
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint positions; // word of the batch at which their positions begin, or those of axis 0
	uint axes; uint axisStep; // with AXES: word of the table that has the axes, words from axis to axis in the batch
	uint heads; uint headDim;
	uint start; // first rotated column of a head
	uint pairs; // of a head
	uint src; uint srcStride;
	uint dst; uint dstStride;
} p;
STORAGE(2) readonly buffer Table { uint table[]; }; // [position][cosines, sines], axes

void main() {
	uint row = gl_WorkGroupID.y;
	uint each = p.headDim - p.pairs; // invocations of a head
	uint head = gl_GlobalInvocationID.x / each;
	uint i = gl_GlobalInvocationID.x % each;
	if (row >= batch[p.rows] || head >= p.heads) return;
	uint src = p.src + row * p.srcStride + head * p.headDim;
	uint dst = p.dst + row * p.dstStride + head * p.headDim;
	if (i >= p.pairs) {
		uint col = i - p.pairs;
		if (col >= p.start) col += 2u * p.pairs;
		act[dst + col] = act[src + col];
		return;
	}
	uint ia = p.start + (NEOX != 0u ? i : 2u * i);
	uint ib = NEOX != 0u ? ia + p.pairs : ia + 1u;
	uint at = p.positions + row;
	if (AXES != 0u) at += table[p.axes + i] * p.axisStep;
	uint angle = batch[at] * 2u * p.pairs + i;
	PRECISE float c = uintBitsToFloat(table[angle]);
	PRECISE float s = uintBitsToFloat(table[angle + p.pairs]);
	PRECISE float a = load(src + ia);
	PRECISE float b = load(src + ib);
	PRECISE float ac = a * c;
	PRECISE float bs = b * s;
	PRECISE float as = a * s;
	PRECISE float bc = b * c;
	PRECISE float ya = ac - bs;
	PRECISE float yb = as + bc;
	store(dst + ia, ya);
	store(dst + ib, yb);
}
