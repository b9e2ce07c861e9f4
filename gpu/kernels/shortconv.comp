#include "common.glsl"
#include "numerics.glsl"

// ShortConv: y_t = act(Σ_j w_j·x_{t−K+1+j} + bias), an invocation for each channel of a
// sequence. Inputs of the batch are read where they stand; the state has those before
// it, [K−1][channels], oldest first, and is replaced at the end. The same in both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, K, 4)
CONSTANT(2, ACT, 0)
LOCAL_SIZE

PARAMS uniform Params {
	uint count; // word of the batch that has the number of sequences
	uint seqs;
	uint channels;
	uint src; uint srcStride;
	uint dst; uint dstStride;
	uint biased;
} p;

#include "recurrent.glsl"
STORAGE(2) readonly buffer W { uint w[]; }; // [channels][K]
STORAGE(3) readonly buffer Bias { uint bias[]; };
STORAGE(4) buffer State { uint state[]; }; // [slots][K−1][channels]

uint ch;

// The input of row t of the sequence; rows before the batch are negative.
float inputAt(int t) {
	if (t >= 0) return load(p.src + (seqRow + uint(t)) * p.srcStride + ch);
	if (seqFresh) return 0.0;
	return uintBitsToFloat(state[(seqSlot * (K - 1u) + uint(t + int(K) - 1)) * p.channels + ch]);
}

void main() {
	ch = gl_GlobalInvocationID.x;
	if (ch >= p.channels || !selectSeq(p.count, p.seqs)) return;
	for (uint r = 0u; r < seqRows; r++) {
		PRECISE float sum = 0.0;
		PRECISE float t;
		for (uint j = 0u; j < K; j++) {
			t = uintBitsToFloat(w[ch * K + j]) * inputAt(int(r + j) - int(K) + 1);
			sum = sum + t;
		}
		if (p.biased != 0u) sum = sum + uintBitsToFloat(bias[ch]);
		store(p.dst + (seqRow + r) * p.dstStride + ch, activate(ACT, sum));
	}
	// Ascending: what is read stands behind what was written.
	for (uint j = 0u; j + 1u < K; j++) {
		float x = inputAt(int(seqRows + j) - int(K) + 1);
		state[(seqSlot * (K - 1u) + j) * p.channels + ch] = floatBitsToUint(x);
	}
}
