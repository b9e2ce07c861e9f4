// KVStore writes the rows' keys and values into the pages of a cache at their positions,
// rounded to the cache's type (rules 5 and 12 of gpu/DESIGN.md); kv.glsl says where, the
// including kernel which type. Rows in y; in x one invocation for each unit of eight
// values, with KV_Q8 for each block of 32 because that shares a scale: first those of
// the keys, then those of the values. It serves both modes.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint positions; uint seqs; // words of the batch at which those of the rows begin
	uint pages; uint pagesPerSeq; // page tables of the group in the batch
	uint heads; uint keyDim; uint valueDim;
	uint k; uint kStride;
	uint v; uint vStride;
} p;
STORAGE(2) buffer Keys { uint keys[]; };
STORAGE(3) buffer Values { uint values[]; };

#define SOURCE(i) act[i]
#include "kvput.glsl"

void main() {
	uint row = gl_WorkGroupID.y;
	uint i = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows]) return;
	uint dim = p.keyDim;
	uint src = p.k + row * p.kStride;
	uint parts = (dim + PART - 1u) / PART;
	bool isKey = i < p.heads * parts;
	if (!isKey) {
		i -= p.heads * parts;
		dim = p.valueDim;
		src = p.v + row * p.vStride;
		parts = (dim + PART - 1u) / PART;
		if (i >= p.heads * parts) return;
	}
	uint head = i / parts;
	uint position = batch[p.positions + row];
	uint page = batch[p.pages + batch[p.seqs + row] * p.pagesPerSeq + position / KV_CELLS];
	storePart(isKey, src + head * dim, kvHead(page, p.heads, head, dim), i % parts, position % KV_CELLS, dim);
}
