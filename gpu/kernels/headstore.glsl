// The heads of a layer's attention from products to rotated queries and stored keys and
// values in one dispatch: RMSNorm of each head (norm.glsl), RoPE (rope.comp) and KVStore
// (kvstore.glsl) of queries, keys and values, rounded as by the kernels apart. Queries and
// keys are also stored where the operations of the plan have their outputs.
//
// Rows in y, heads in x: first those of the queries, then of the keys, then of the values.
// A workgroup has a head and keeps it in shared memory. Heads are short, so that fast mode
// has nothing to gain by another sum: it serves both modes.

CONSTANT(0, WG, 64)
CONSTANT(1, Q_NORM, 0) // 1: normalise, 2: and multiply with weights
CONSTANT(2, K_NORM, 0)
CONSTANT(3, ROPE, 0)   // 1: pairs are neighbours, 2: columns half a rotation apart; 3 and 4: the same with axes
CONSTANT(4, COPY, 0)   // 1: queries also as attention_queries.comp lays them out, 2: as halves
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint positions; uint seqs; // words of the batch at which those of the rows begin
	uint pages; uint pagesPerSeq; // page tables of the group in the batch
	uint qHeads; uint heads; uint keyDim; uint valueDim;
	uint qSrc; uint qSrcStride; uint q; uint qStride;
	uint kSrc; uint kSrcStride; uint k; uint kStride;
	uint v; uint vStride;
	uint start; uint pairs; // of a head: first rotated column, pairs
	uint turns; uint axes; uint axisStep; // as positions, axes and axisStep of rope.comp
	uint qStep; uint kStep; // from head to head in the weights, 0 where all use the same
	float qEps; float kEps; float inverse; // inverse = 1/keyDim
} p;
STORAGE(2) buffer Keys { uint keys[]; };
STORAGE(3) buffer Values { uint values[]; };
STORAGE(4) readonly buffer Table { uint table[]; }; // [position][cosines, sines], axes
STORAGE(5) readonly buffer QWeight { uint qWeight[]; };
STORAGE(6) readonly buffer KWeight { uint kWeight[]; };
STORAGE(7) buffer Queries { uint queries[]; };

#define MOST 512u // columns of a head
shared float head[MOST];
#include "fold.glsl"
#define SOURCE(i) floatBitsToUint(head[i])
#include "kvput.glsl"

// normalise makes RMSNorm of the head; invocations see it after a barrier.
void normalise(float eps, bool weighed, bool isKey, uint weight) {
	uint id = gl_LocalInvocationID.x;
	PRECISE float sum = 0.0;
	PRECISE float x;
	PRECISE float square;
	for (uint i = id; i < (id < ADDERS ? p.keyDim : 0u); i += ADDERS) {
		x = head[i];
		square = x * x;
		sum = sum + square;
	}
	PRECISE float total = fold(sum) * p.inverse;
	PRECISE float guarded = total + eps;
	float r = Rsqrt(guarded);
	for (uint i = id; i < p.keyDim; i += WG) {
		PRECISE float y = head[i] * r;
		if (weighed) y = y * uintBitsToFloat(isKey ? kWeight[weight + i] : qWeight[weight + i]);
		head[i] = y;
	}
}

void rotate(uint row) {
	for (uint i = gl_LocalInvocationID.x; i < p.pairs; i += WG) {
		bool neox = ROPE == 2u || ROPE == 4u;
		uint ia = p.start + (neox ? i : 2u * i);
		uint ib = neox ? ia + p.pairs : ia + 1u;
		uint at = p.turns + row;
		if (ROPE > 2u) at += table[p.axes + i] * p.axisStep;
		uint angle = batch[at] * 2u * p.pairs + i;
		PRECISE float c = uintBitsToFloat(table[angle]);
		PRECISE float s = uintBitsToFloat(table[angle + p.pairs]);
		PRECISE float a = head[ia];
		PRECISE float b = head[ib];
		PRECISE float ac = a * c;
		PRECISE float bs = b * s;
		PRECISE float as = a * s;
		PRECISE float bc = b * c;
		PRECISE float ya = ac - bs;
		PRECISE float yb = as + bc;
		head[ia] = ya;
		head[ib] = yb;
	}
}

// copyQuery lays out the head, the at-th of all rows, in whole units of eight columns.
void copyQuery(uint at) {
	uint padded = (p.keyDim + 7u) / 8u * 8u;
	for (uint i = gl_LocalInvocationID.x; i < padded; i += WG) {
		float x = i < p.keyDim ? head[i] : 0.0;
		queries[at * padded + i] = floatBitsToUint(COPY == 2u ? roundHalf(x) : x);
	}
}

void main() {
	uint id = gl_LocalInvocationID.x;
	uint row = gl_WorkGroupID.y;
	uint h = gl_WorkGroupID.x;
	if (row >= batch[p.rows]) return; // the same for the whole workgroup
	bool isQuery = h < p.qHeads;
	if (!isQuery) h -= p.qHeads;
	bool isKey = !isQuery && h < p.heads;
	if (!isQuery && !isKey) h -= p.heads;
	bool isValue = !isQuery && !isKey;
	uint dim = isValue ? p.valueDim : p.keyDim;
	uint src = isQuery ? p.qSrc + row * p.qSrcStride : (isKey ? p.kSrc + row * p.kSrcStride : p.v + row * p.vStride);
	uint dst = isQuery ? p.q + row * p.qStride : p.k + row * p.kStride;
	for (uint i = id; i < dim; i += WG) head[i] = load(src + h * dim + i);
	sync();
	if (!isValue) {
		// What a workgroup does is the same for all of it.
		if (isQuery ? Q_NORM != 0u : K_NORM != 0u) {
			normalise(isQuery ? p.qEps : p.kEps, isQuery ? Q_NORM == 2u : K_NORM == 2u, isKey, h * (isQuery ? p.qStep : p.kStep));
			sync();
		}
		if (ROPE != 0u) {
			rotate(row);
			sync();
		}
		for (uint i = id; i < dim; i += WG) store(dst + h * dim + i, head[i]);
	}
	if (isQuery) {
		if (COPY != 0u) copyQuery(row * p.qHeads + h);
		return;
	}
	uint position = batch[p.positions + row];
	uint page = batch[p.pages + batch[p.seqs + row] * p.pagesPerSeq + position / KV_CELLS];
	uint at = kvHead(page, p.heads, h, dim);
	for (uint i = id; i < (dim + PART - 1u) / PART; i += WG) storePart(isKey, 0u, at, i, position % KV_CELLS, dim);
}
