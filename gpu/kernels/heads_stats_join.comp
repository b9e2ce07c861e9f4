#include "common.glsl"

// Statistics of logits, second step of two: each lane of each of the four sums is added up
// over the blocks, in their order, in float32 beside the sum of what that rounds away
// (rowstats.Lanes). An invocation has a lane. Grid: a workgroup for each output (y).
// heads: from element p.stats on, p.each of them for each output, [4 sums][16][2] and the
// pivot.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint blocks; uint outs; uint wants; uint stats; uint each; uint zero; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Part { uint part[]; };
STORAGE(2) buffer Heads { uint heads[]; };

// The same number, of which a compiler does not know what it was made of: where PRECISE is
// empty, one may take a + b − a for b.
float held(float x) { return uintBitsToFloat(floatBitsToUint(x) ^ p.zero); }

void main() {
	uint o = gl_WorkGroupID.y;
	if (o >= batch[1] || batch[p.wants + o] == 0u) return;
	for (uint lane = gl_LocalInvocationID.x; lane < 64u; lane += WG) {
		PRECISE float high = 0.0;
		PRECISE float low = 0.0;
		for (uint b = 0u; b < p.blocks; b++) {
			PRECISE float v = uintBitsToFloat(part[64u * (o * p.blocks + b) + lane]);
			PRECISE float s = high + v;
			float sum = held(s);
			PRECISE float d = sum - high;
			float y = held(d);
			PRECISE float x = sum - y;
			PRECISE float e = high - x;
			PRECISE float f = v - y;
			PRECISE float lost = e + f;
			low = low + lost;
			high = sum;
		}
		uint to = p.stats + p.each * o + 2u * lane;
		heads[to] = floatBitsToUint(high);
		heads[to + 1u] = floatBitsToUint(low);
	}
	if (gl_LocalInvocationID.x == 0u) heads[p.stats + p.each * o + 128u] = part[64u * p.outs * p.blocks + o];
}
