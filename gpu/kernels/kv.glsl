// Where a value lies in a page of a KV cache: README.md, "Pages of KV caches". The
// including kernel defines one of KV_F16, KV_F32 and KV_Q8. All numbers are words (of 4
// bytes) from the beginning of the cache's buffer unless a name says otherwise.
//
// A unit is eight neighbouring values of a head. Keys stand by unit and then by cell,
// for attention gives each invocation a cell; values by cell and then by unit, for there
// each invocation has columns. Both read whole vectors that stand side by side.

#if defined(KV_F16)
#define KV_UNIT 4u
#elif defined(KV_F32)
#define KV_UNIT 8u
#else
#define KV_UNIT 2u
#endif
#define KV_CELLS 64u // ops.PageSize

uint kvUnits(uint dim) { return (dim + 7u) / 8u; }

// The blocks of KV_Q8 (ops.KVBlock values) in a head.
uint kvBlocks(uint dim) { return (dim + 31u) / 32u; }

// What a head takes in a page.
uint kvHeadWords(uint dim) {
	uint n = KV_CELLS * kvUnits(dim) * KV_UNIT;
#ifdef KV_Q8
	n += KV_CELLS / 2u * kvBlocks(dim);
#endif
	return n;
}

// Where a head begins.
uint kvHead(uint page, uint heads, uint head, uint dim) { return (page * heads + head) * kvHeadWords(dim); }

// The first word of a unit, from where its head begins.
uint keyUnit(uint unit, uint cell) { return (unit * KV_CELLS + cell) * KV_UNIT; }
uint valueUnit(uint unit, uint cell, uint dim) { return (cell * kvUnits(dim) + unit) * KV_UNIT; }

// The scale of a block as a half, from where its head begins: half n is half of word
// n / 2. Cells that stand side by side share a word, so a store joins it with atomics.
uint scaleHalf(uint block, uint cell, uint dim) {
	return 2u * KV_CELLS * kvUnits(dim) * KV_UNIT + block * KV_CELLS + cell;
}
