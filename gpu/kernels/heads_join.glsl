// Heads, third step of three: joins the blocks of each output. Grid: a workgroup for
// each output (y). heads: [outs][4] best token, the bits of its logit, the bits of the
// log-sum-exp, the lowest id whose logit is not finite (or all bits).

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint at; uint stride; uint blocks; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) readonly buffer Part { uint part[]; };
STORAGE(3) buffer Heads { uint heads[]; };

#include "numerics.glsl"
#include "best.glsl"

void main() {
	uint o = gl_WorkGroupID.y;
	if (o >= batch[1]) return;
	uint lid = gl_LocalInvocationID.x;
	uint key = 0u;
	uint id = none;
	uint bad = none;
	for (uint b = lid; b < p.blocks; b += WG) {
		uint at = 4u * (o * p.blocks + b);
		if (better(part[at], part[at + 1u], key, id)) {
			key = part[at];
			id = part[at + 1u];
		}
		bad = min(bad, part[at + 2u]);
	}
	joinBest(key, id, bad);
	if (lid != 0u) return;
	PRECISE float sum = 0.0;
	for (uint b = 0u; b < p.blocks; b++) sum = sum + uintBitsToFloat(part[4u * (o * p.blocks + b) + 3u]);
	uint best = act[p.at + o * p.stride + id];
	PRECISE float lse = uintBitsToFloat(best) + Ln(sum);
	heads[4u * o] = id;
	heads[4u * o + 1u] = best;
	heads[4u * o + 2u] = floatBitsToUint(lse);
	heads[4u * o + 3u] = bad;
}
