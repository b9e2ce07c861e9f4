#include "common.glsl"
#include "numerics.glsl"

// Mamba1: h_n = Exp(dt·A_n)·h_n + B_n·(dt·x), y = dot(h, C) + D·x, an invocation for
// each channel of a sequence. The state is [slots][N][channels]. The same in both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, N, 16)
LOCAL_SIZE

PARAMS uniform Params {
	uint count; // word of the batch that has the number of sequences
	uint seqs;
	uint from; uint most; // the rows of each sequence that this dispatch does
	uint channels;
	uint x; uint xStride;
	uint dt; uint dtStride;
	uint b; uint bStride;
	uint c; uint cStride;
	uint dst; uint dstStride;
} p;

#include "recurrent.glsl"
STORAGE(2) readonly buffer A { uint a[]; }; // [channels][N]
STORAGE(3) readonly buffer D { uint d[]; }; // [channels]
STORAGE(4) buffer State { uint state[]; };

void main() {
	uint ch = gl_GlobalInvocationID.x;
	if (ch >= p.channels || !selectSeq(p.count, p.seqs)) return;
	uint base = seqSlot * N * p.channels + ch;
	uint end = min(seqRows, p.from + p.most);
	for (uint r = p.from; r < end; r++) {
		uint row = seqRow + r;
		bool fresh = seqFresh && r == 0u;
		float x = load(p.x + row * p.xStride + ch);
		float dt = load(p.dt + row * p.dtStride + ch);
		PRECISE float u = dt * x;
		Fold fold = Fold(0.0, 0.0, 0.0, 0.0);
		for (uint i = 0u; i < 8u; i++) {
			PRECISE float pair = 0.0;
			for (uint k = 0u; k < 2u; k++) {
				PRECISE float sum = 0.0;
				for (uint n = foldLane(i) + 8u * k; n < N; n += 16u) {
					uint at = base + n * p.channels;
					PRECISE float h = fresh ? 0.0 : uintBitsToFloat(state[at]);
					PRECISE float t = dt * uintBitsToFloat(a[ch * N + n]);
					h = Exp(t) * h;
					t = load(p.b + row * p.bStride + n) * u;
					h = h + t;
					state[at] = floatBitsToUint(h);
					t = h * load(p.c + row * p.cStride + n);
					sum = sum + t;
				}
				pair = pair + sum;
			}
			fold = folded(fold, i, pair);
		}
		PRECISE float t = uintBitsToFloat(d[ch]) * x;
		PRECISE float y = fold.sum + t;
		store(p.dst + row * p.dstStride + ch, y);
	}
}
