#include "common.glsl"
#include "numerics.glsl"
#include "lanes.glsl"

// Statistics of logits, first step of two: of each block of 1,024 logits of each output the
// sums, in 16 lanes, of logit − pivot, of its square, of the weight 2^t and of the weight
// times t, t being the logit's distance from the largest one in powers of two (rowstats, in
// the same order of roundings). An invocation has a lane of a block. Grid: WG / 16 blocks
// (x), outputs (y); an output that wants none leaves. part: [outs][blocks][4 sums][16],
// and behind that [outs] the pivot, which each workgroup makes for itself of at most 256
// logits: that costs less than a dispatch.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint at; uint stride; uint vocab; uint blocks; uint outs; uint wants; uint samples; uint step; float inverse; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) readonly buffer Heads { uint heads[]; };
STORAGE(3) buffer Part { uint part[]; };

const uint block = 1024u;

shared float lanes[16];

float logit(uint i) { return uintBitsToFloat(act[p.at + gl_WorkGroupID.y * p.stride + i]); }

float pivotOf() {
	uint lane = gl_LocalInvocationID.x;
	if (lane < LANES) {
		PRECISE float sum = 0.0;
		for (uint i = lane; i < p.samples; i += LANES) {
			PRECISE float x = logit(i * p.step) * p.inverse;
			sum = sum + x;
		}
		lanes[lane] = sum;
	}
	sync();
	float v[16];
	for (int i = 0; i < 16; i++) v[i] = lanes[i];
	return foldLanes(v);
}

// 2^t for −100 < t ≤ 0.
float power(float t) {
	int n = roundToInt(t);
	PRECISE float f = t - float(n);
	PRECISE float g = f * f;
	PRECISE float q;
	q = 0.0013264727 * f;
	PRECISE float a = q + 0.009671513;
	q = 0.055507336 * f;
	PRECISE float b = q + 0.24022242;
	q = 0.69314698 * f;
	PRECISE float c = q + 1.0;
	q = a * g;
	PRECISE float r = q + b;
	q = r * g;
	PRECISE float w = q + c;
	return uintBitsToFloat(floatBitsToUint(w) + (uint(n) << 23));
}

void main() {
	uint o = gl_WorkGroupID.y;
	if (o >= batch[1] || batch[p.wants + o] == 0u) return;
	float pivot = pivotOf();
	float top = uintBitsToFloat(heads[4u * o + 1u]);
	uint b = gl_WorkGroupID.x * (WG / LANES) + gl_LocalInvocationID.x / LANES;
	uint lane = gl_LocalInvocationID.x % LANES;
	if (gl_GlobalInvocationID.x == 0u) part[64u * p.outs * p.blocks + o] = floatBitsToUint(pivot);
	if (b >= p.blocks) return;
	PRECISE float first = 0.0;
	PRECISE float second = 0.0;
	PRECISE float sum = 0.0;
	PRECISE float dist = 0.0;
	uint end = min((b + 1u) * block, p.vocab);
	for (uint i = b * block + lane; i < end; i += LANES) {
		float l = logit(i);
		PRECISE float x = l - pivot;
		PRECISE float x2 = x * x;
		first = first + x;
		second = second + x2;
		PRECISE float d = l - top;
		PRECISE float t = d * 1.44269504;
		if (t > -100.0) {
			PRECISE float w = power(t);
			PRECISE float wt = w * t;
			sum = sum + w;
			dist = dist + wt;
		}
	}
	uint to = 64u * (o * p.blocks + b) + lane;
	part[to] = floatBitsToUint(first);
	part[to + 16u] = floatBitsToUint(second);
	part[to + 32u] = floatBitsToUint(sum);
	part[to + 48u] = floatBitsToUint(dist);
}
