#include "common.glsl"
#include "numerics.glsl"

// Mamba2: M = Exp(dt·A)·M + (dt·x)·Bᵀ, y = M·C + D·x, one decay for each head of P
// channels; an invocation for each channel of a sequence. The state is
// [slots][N][heads·P]. The same in both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, N, 128)
LOCAL_SIZE

PARAMS uniform Params {
	uint count; // word of the batch that has the number of sequences
	uint seqs;
	uint from; uint most; // the rows of each sequence that this dispatch does
	uint channels;
	uint headDim;  // P
	uint perGroup; // heads of a group
	uint x; uint xStride;
	uint dt; uint dtStride;
	uint b; uint bStride;
	uint c; uint cStride;
	uint dst; uint dstStride;
} p;

#include "recurrent.glsl"
STORAGE(2) readonly buffer A { uint a[]; }; // [heads]
STORAGE(3) readonly buffer D { uint d[]; }; // [heads]
STORAGE(4) buffer State { uint state[]; };

void main() {
	uint ch = gl_GlobalInvocationID.x;
	if (ch >= p.channels || !selectSeq(p.count, p.seqs)) return;
	uint head = ch / p.headDim;
	uint group = head / p.perGroup * N;
	uint base = seqSlot * N * p.channels + ch;
	uint end = min(seqRows, p.from + p.most);
	for (uint r = p.from; r < end; r++) {
		uint row = seqRow + r;
		bool fresh = seqFresh && r == 0u;
		float x = load(p.x + row * p.xStride + ch);
		float dt = load(p.dt + row * p.dtStride + head);
		PRECISE float u = dt * x;
		PRECISE float t = dt * uintBitsToFloat(a[head]);
		PRECISE float decay = Exp(t);
		Fold fold = Fold(0.0, 0.0, 0.0, 0.0);
		for (uint i = 0u; i < 8u; i++) {
			PRECISE float pair = 0.0;
			for (uint k = 0u; k < 2u; k++) {
				PRECISE float sum = 0.0;
				for (uint n = foldLane(i) + 8u * k; n < N; n += 16u) {
					uint at = base + n * p.channels;
					PRECISE float m = fresh ? 0.0 : uintBitsToFloat(state[at]);
					m = decay * m;
					t = load(p.b + row * p.bStride + group + n) * u;
					m = m + t;
					state[at] = floatBitsToUint(m);
					t = m * load(p.c + row * p.cStride + group + n);
					sum = sum + t;
				}
				pair = pair + sum;
			}
			fold = folded(fold, i, pair);
		}
		t = uintBitsToFloat(d[head]) * x;
		PRECISE float y = fold.sum + t;
		store(p.dst + row * p.dstStride + ch, y);
	}
}
