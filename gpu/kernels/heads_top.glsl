// The best tokens, first step of two: of each segment of 4,096 logits the K largest, in
// the order of their ids. Grid: a workgroup for each segment (x) and output (y); an
// output that wants none leaves. part: [outs][segments][256][2] key and id.

CONSTANT(0, WG, 256)
LOCAL_SIZE

PARAMS uniform Params { uint at; uint stride; uint vocab; uint segments; uint wants; } p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) buffer Part { uint part[]; };

#include "order.glsl"

const uint segment = 4096u;

uint keyAt(uint i) {
	return orderKey(act[p.at + gl_WorkGroupID.y * p.stride + gl_WorkGroupID.x * segment + i]);
}

#include "select.glsl"

void main() {
	uint o = gl_WorkGroupID.y;
	if (o >= batch[1] || batch[p.wants + o] == 0u) return;
	number();
	uint from = gl_WorkGroupID.x * segment;
	uint n = min(segment, p.vocab - from);
	uint k = min(batch[p.wants + o], n);
	uint ties;
	uint key = threshold(n, k, ties);

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
			uint at = 2u * ((o * p.segments + gl_WorkGroupID.x) * 256u + to);
			part[at] = x;
			part[at + 1u] = from + i;
			to++;
		}
	}
}
