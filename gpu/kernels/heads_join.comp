#include "common.glsl"
#include "numerics.glsl"

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

const uint none = 0xFFFFFFFFu;

shared uint keys[256];
shared uint ids[256];
shared uint bads[256];

bool better(uint key, uint id, uint thanKey, uint thanID) {
	return key > thanKey || (key == thanKey && id < thanID);
}

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
	keys[lid] = key;
	ids[lid] = id;
	bads[lid] = bad;
	sync();
	for (uint n = WG / 2u; n > 0u; n /= 2u) {
		if (lid < n) {
			if (better(keys[lid + n], ids[lid + n], keys[lid], ids[lid])) {
				keys[lid] = keys[lid + n];
				ids[lid] = ids[lid + n];
			}
			bads[lid] = min(bads[lid], bads[lid + n]);
		}
		sync();
	}
	if (lid != 0u) return;
	PRECISE float sum = 0.0;
	for (uint b = 0u; b < p.blocks; b++) sum = sum + uintBitsToFloat(part[4u * (o * p.blocks + b) + 3u]);
	uint best = act[p.at + o * p.stride + ids[0]];
	PRECISE float lse = uintBitsToFloat(best) + Ln(sum);
	heads[4u * o] = ids[0];
	heads[4u * o + 1u] = best;
	heads[4u * o + 2u] = floatBitsToUint(lse);
	heads[4u * o + 3u] = bads[0];
}
