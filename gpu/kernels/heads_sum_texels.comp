#include "common.glsl"
#define EXACT
#define TEXEL
#include "numerics.glsl"
#include "vectors.glsl"
#include "texels.glsl"

// heads_sum for software renderers: an invocation has a block of 1,024 logits by itself
// and all 16 lanes of its sum. Grid: blocks (x), outputs (y).

CONSTANT(0, WG, 32)
LOCAL_SIZE

PARAMS uniform Params { uint at; uint stride; uint vocab; uint blocks; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
FETCHED(1, Act, act)
STORAGE(2) buffer Part { uint part[]; };

vec4 lanes[4]; // four neighbours each
float most;

void add(uint from, uint i, int k) {
	uint at = i + uint(k);
	PRECISE vec4 d = uintBitsToFloat(FETCH(act, from + at)) - most;
	bvec4 beyond = greaterThanEqual(4u * at + uvec4(0u, 1u, 2u, 3u), uvec4(p.vocab));
	PRECISE vec4 sum = lanes[k] + mix(exps(d), vec4(0.0), beyond);
	lanes[k] = sum;
}

void main() {
	uint o = gl_WorkGroupID.y;
	uint block = gl_GlobalInvocationID.x;
	if (o >= batch[1] || block >= p.blocks) return;
	uint key = 0u;
	for (uint b = 0u; b < p.blocks; b++) key = max(key, part[4u * (o * p.blocks + b)]);
	most = uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7FFFFFFFu : ~key);

	uint from = (p.at + o * p.stride) / 4u;
	for (int k = 0; k < 4; k++) lanes[k] = vec4(0.0);
	for (uint i = 256u * block; i < min(256u * block + 256u, (p.vocab + 3u) / 4u); i += 4u) {
		add(from, i, 0);
		add(from, i, 1);
		add(from, i, 2);
		add(from, i, 3);
	}
	PRECISE vec4 a = lanes[0] + lanes[2];
	PRECISE vec4 b = lanes[1] + lanes[3];
	PRECISE vec4 c = a + b;
	PRECISE float x = c.x + c.z;
	PRECISE float y = c.y + c.w;
	PRECISE float sum = x + y;
	part[4u * (o * p.blocks + block) + 3u] = floatBitsToUint(sum);
}
