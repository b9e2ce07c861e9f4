// The best tokens, second step of two: the K largest of what the segments of an output
// left, best first, equals by ascending id. Grid: a workgroup for each output (y).
// heads: from element p.top on, p.each of them for each output, [256][2] id and the bits of
// its logit.

CONSTANT(0, WG, 256)
LOCAL_SIZE

PARAMS uniform Params { uint at; uint stride; uint vocab; uint segments; uint wants; uint top; uint each; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) readonly buffer Part { uint part[]; };
STORAGE(3) buffer Heads { uint heads[]; };

#include "order.glsl"

const uint segment = 4096u;
const uint none = 0xFFFFFFFFu;

shared uint keys[256];
shared uint ids[256];

// Where candidate i lies: every segment but the last left min(K, 4096) of them.
uint candidate(uint i) {
	uint o = gl_WorkGroupID.y;
	uint k = batch[p.wants + o];
	return 2u * ((o * p.segments + i / k) * 256u + i % k);
}

uint keyAt(uint i) { return part[candidate(i)]; }

#include "select.glsl"

// Sorts the 256 pairs by descending key and ascending id (bitonic).
void sortPairs() {
	for (uint size = 2u; size <= 256u; size *= 2u) {
		for (uint far = size / 2u; far > 0u; far /= 2u) {
			for (uint i = gl_LocalInvocationID.x; i < 256u; i += WG) {
				uint j = i ^ far;
				if (j > i) {
					bool before = keys[i] > keys[j] || (keys[i] == keys[j] && ids[i] < ids[j]);
					if (before != ((i & size) == 0u)) {
						uint k = keys[i];
						keys[i] = keys[j];
						keys[j] = k;
						k = ids[i];
						ids[i] = ids[j];
						ids[j] = k;
					}
				}
			}
			sync();
		}
	}
}

void main() {
	uint o = gl_WorkGroupID.y;
	if (o >= batch[1] || batch[p.wants + o] == 0u) return;
	number();
	uint lid = gl_LocalInvocationID.x;
	uint k = batch[p.wants + o];
	uint n = (p.segments - 1u) * k + min(k, p.vocab - (p.segments - 1u) * segment);
	uint ties;
	uint key = threshold(n, k, ties);
	for (uint i = lid; i < 256u; i += WG) {
		keys[i] = 0u;
		ids[i] = none;
	}
	sync();

	uint each = (n + WG - 1u) / WG;
	uint first = min(self * each, n);
	uint end = min(first + each, n);
	uint rank;
	uint to = placeOf(first, end, key, ties, rank);
	for (uint i = first; i < end; i++) {
		uint x = keyAt(i);
		bool take = x > key;
		if (x == key) {
			take = rank < ties;
			rank++;
		}
		if (take) {
			keys[to] = x;
			ids[to] = part[candidate(i) + 1u];
			to++;
		}
	}
	sync();
	sortPairs();
	for (uint i = lid; i < k; i += WG) {
		uint to = p.top + p.each * o + 2u * i;
		heads[to] = ids[i];
		heads[to + 1u] = act[p.at + o * p.stride + ids[i]];
	}
}
