#include "common.glsl"
#include "numerics.glsl"
#include "lanes.glsl"

// Heads, second step of three: Σ Exp(logit − M) of each block of 1,024 logits in lanes
// (rule 9 of gpu/DESIGN.md), M being the largest logit of the row, which every workgroup
// looks up in what the first step left. Grid: a workgroup for each block (x) and output
// (y). The exponentials are taken by all invocations; 16 of them add up.

CONSTANT(0, WG, 256)
LOCAL_SIZE

PARAMS uniform Params { uint at; uint stride; uint vocab; uint blocks; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) buffer Part { uint part[]; };

const uint block = 1024u;

shared uint keys[256];
shared float exps[1024];
shared float lanes[16];

void main() {
	uint o = gl_WorkGroupID.y;
	if (o >= batch[1]) return;
	uint lid = gl_LocalInvocationID.x;
	uint key = 0u;
	for (uint b = lid; b < p.blocks; b += WG) key = max(key, part[4u * (o * p.blocks + b)]);
	keys[lid] = key;
	sync();
	for (uint n = WG / 2u; n > 0u; n /= 2u) {
		if (lid < n) keys[lid] = max(keys[lid], keys[lid + n]);
		sync();
	}
	key = keys[0];
	float m = uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7FFFFFFFu : ~key);

	uint from = gl_WorkGroupID.x * block;
	uint count = min(block, p.vocab - from);
	for (uint i = lid; i < count; i += WG) {
		PRECISE float d = uintBitsToFloat(act[p.at + o * p.stride + from + i]) - m;
		exps[i] = Exp(d);
	}
	sync();
	if (lid < LANES) {
		PRECISE float sum = 0.0;
		for (uint i = lid; i < count; i += LANES) sum = sum + exps[i];
		lanes[lid] = sum;
	}
	sync();
	if (lid == 0u) {
		float v[16];
		for (int i = 0; i < 16; i++) v[i] = lanes[i];
		part[4u * (o * p.blocks + gl_WorkGroupID.x) + 3u] = floatBitsToUint(foldLanes(v));
	}
}
