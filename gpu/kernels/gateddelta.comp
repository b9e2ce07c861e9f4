#include "common.glsl"
#include "numerics.glsl"

// GatedDelta: M = e^g·M, δ = β(v − Mᵀk), M += k·δᵀ, o = Mᵀq·scale, for each value head;
// an invocation for each column of the values of a sequence. The state is
// [slots][value head][DIM of the key][DIM of the value]. The same in both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, DIM, 128)
LOCAL_SIZE

PARAMS uniform Params {
	uint count; // word of the batch that has the number of sequences
	uint seqs;
	uint from; uint most; // the rows of each sequence that this dispatch does
	uint kHeads; uint vHeads;
	uint q; uint qStride;
	uint k; uint kStride;
	uint v; uint vStride;
	uint gate; uint gateStride;
	uint beta; uint betaStride;
	uint dst; uint dstStride;
	float scale;
} p;

#include "recurrent.glsl"
STORAGE(2) buffer State { uint state[]; };

void main() {
	uint col = gl_GlobalInvocationID.x;
	if (col >= p.vHeads * DIM || !selectSeq(p.count, p.seqs)) return;
	uint head = col / DIM;
	uint kHead = head % p.kHeads * DIM;
	uint base = (seqSlot * p.vHeads + head) * DIM * DIM + col % DIM;
	uint end = min(seqRows, p.from + p.most);
	for (uint r = p.from; r < end; r++) {
		uint row = seqRow + r;
		bool fresh = seqFresh && r == 0u;
		float decay = Exp(load(p.gate + row * p.gateStride + head));
		// Twice over the state: with the key, then with the query.
		PRECISE float delta = 0.0;
		PRECISE float t;
		for (uint second = 0u; second < 2u; second++) {
			Fold fold = Fold(0.0, 0.0, 0.0, 0.0);
			for (uint i = 0u; i < 8u; i++) {
				PRECISE float pair = 0.0;
				for (uint l = 0u; l < 2u; l++) {
					PRECISE float sum = 0.0;
					for (uint n = foldLane(i) + 8u * l; n < DIM; n += 16u) {
						uint at = base + n * DIM;
						PRECISE float m = fresh && second == 0u ? 0.0 : uintBitsToFloat(state[at]);
						float key = load(p.k + row * p.kStride + kHead + n);
						if (second == 0u) {
							m = m * decay;
							t = m * key;
						} else {
							t = key * delta;
							m = m + t;
							t = m * load(p.q + row * p.qStride + kHead + n);
						}
						state[at] = floatBitsToUint(m);
						sum = sum + t;
					}
					pair = pair + sum;
				}
				fold = folded(fold, i, pair);
			}
			if (second == 0u) {
				delta = load(p.v + row * p.vStride + col) - fold.sum;
				delta = load(p.beta + row * p.betaStride + head) * delta;
			} else {
				t = fold.sum * p.scale;
				store(p.dst + row * p.dstStride + col, t);
			}
		}
	}
}
