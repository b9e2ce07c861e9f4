#include "common.glsl"
#define EXACT
#define TEXEL
#include "texels.glsl"
#include "order.glsl"

// heads_max for software renderers, where barriers and reads of storage buffers cost more
// than all else: an invocation has a block of 1,024 logits by itself, four at a time.
// Grid: blocks (x), outputs (y).

CONSTANT(0, WG, 32)
LOCAL_SIZE

PARAMS uniform Params { uint at; uint stride; uint vocab; uint blocks; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
FETCHED(1, Act, act)
STORAGE(2) buffer Part { uint part[]; };

uint key = 0u;
uint id = 0xFFFFFFFFu;
uint bad = 0xFFFFFFFFu;

void take(uint bits, uint i) {
	if (i >= p.vocab) return;
	uint k = orderKey(bits);
	if (k > key) { // ids ascend
		key = k;
		id = i;
	}
	if (notFinite(bits)) bad = min(bad, i);
}

void main() {
	uint o = gl_WorkGroupID.y;
	uint block = gl_GlobalInvocationID.x;
	if (o >= batch[1] || block >= p.blocks) return;
	uint from = (p.at + o * p.stride) / 4u;
	for (uint i = 256u * block; i < min(256u * block + 256u, (p.vocab + 3u) / 4u); i++) {
		uvec4 v = FETCH(act, from + i);
		take(v.x, 4u * i);
		take(v.y, 4u * i + 1u);
		take(v.z, 4u * i + 2u);
		take(v.w, 4u * i + 3u);
	}
	uint to = 4u * (o * p.blocks + block);
	part[to] = key;
	part[to + 1u] = id;
	part[to + 2u] = bad;
}
