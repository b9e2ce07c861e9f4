// Heads, first step of three: of each block of 1,024 logits of each output the largest,
// with the lowest id of equals, and the lowest id whose logit is not finite. Grid: a
// workgroup for each block (x) and output (y). part: [outs][blocks][4] key of the
// largest, its id, id of the bad one (or all bits), and room for the next step's sum.

CONSTANT(0, WG, 256)
LOCAL_SIZE

PARAMS uniform Params { uint at; uint stride; uint vocab; uint blocks; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) buffer Part { uint part[]; };

const uint block = 1024u;

#include "order.glsl"
#include "best.glsl"

void main() {
	uint o = gl_WorkGroupID.y;
	if (o >= batch[1]) return;
	uint lid = gl_LocalInvocationID.x;
	uint end = min((gl_WorkGroupID.x + 1u) * block, p.vocab);
	uint key = 0u;
	uint id = none;
	uint bad = none;
	for (uint i = gl_WorkGroupID.x * block + lid; i < end; i += WG) {
		uint bits = act[p.at + o * p.stride + i];
		uint k = orderKey(bits);
		if (better(k, i, key, id)) {
			key = k;
			id = i;
		}
		if (notFinite(bits)) bad = min(bad, i);
	}
	joinBest(key, id, bad);
	if (lid == 0u) {
		uint to = 4u * (o * p.blocks + gl_WorkGroupID.x);
		part[to] = key;
		part[to + 1u] = id;
		part[to + 2u] = bad;
	}
}
