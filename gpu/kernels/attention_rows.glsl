// What attention.glsl stands on: which queries a workgroup has, what they see, where their
// output stands, and how chunks are joined. The including kernel has the functions of
// numerics.glsl, or defines FAST and has those of numerics_fast.glsl.

#include "vectors.glsl"

CONSTANT(0, WG, 64)
CONSTANT(1, HEADS, 4)
CONSTANT(2, ROWS, 1)
CONSTANT(3, KEY_DIM, 64)
CONSTANT(4, VALUE_DIM, 64)
CONSTANT(5, STAGE, 0)
CONSTANT(6, SUNK, 0)   // 1: there are sinks
CONSTANT(7, SLOPED, 0) // 1: there are slopes (ALiBi)
CONSTANT(8, CAPPED, 0) // 1: scores have a softcap
CONSTANT(9, WHOLE, 0)  // 1: the output also as whole numbers
LOCAL_SIZE

PARAMS uniform Params {
	uint rows;  // word of the batch that has the number of rows
	uint pos;   // [rows] position
	uint seq;   // [rows] number of the sequence
	uint pages; // [sequences][pageN] page numbers
	uint pageN;
	uint q; uint qStride; uint qHead; // from row to row, from head to head; texels in the variants with texels
	uint dst; uint dstStride;
	uint kvHeads;
	uint share;   // query heads of a KV head
	uint lo; uint hi; // [rows] the first and the last position that a row sees
	uint chunks;  // chunks that part has room for, by workgroup; 1 for stage ALL
	uint queries; // 4; the bound of loops that are not to be unrolled
	float scale;
	float cap; float invCap; // softcap of scores
	uint whole; uint wholeStride; // in texels of part
} p;

// Below every score: what is not seen.
#define MASKED (uintBitsToFloat(0xFF7FFFFFu))

#define CHUNK_SIZE 256u // ops.KVChunk
#define QUADS ((VALUE_DIM + 3u) / 4u)

// What the workgroup is at; lo and hi are the positions that each query sees.
uint row; // of query 0
uint rowEnd;
uint kvNumber;
uint headFirst; // of query 0
uint headCount; // that there are from it on
ivec4 lo;
ivec4 hi;
uint first; // position that any query sees
uint last;
uint allFrom; // first position that all of them see
uint allTo;
uint pageTable;

uint rowOf(uint query) { return row + query / HEADS; }
uint headOf(uint query) { return headFirst + query % HEADS; }
bool there(uint query) { return rowOf(query) < rowEnd && query % HEADS < headCount; }

// How many workgroups the heads make.
uint headGroups() { return (p.share + HEADS - 1u) / HEADS; }

// Goes to a group of heads.
void selectHeads(uint unit) {
	kvNumber = unit / headGroups();
	uint at = unit % headGroups() * HEADS;
	headFirst = kvNumber * p.share + at;
	headCount = min(p.share - at, HEADS);
}

// Goes to the rows from a row on that are neighbours in one sequence, at most to end:
// output rows may stand apart.
void selectRows(uint from, uint end) {
	row = from;
	rowEnd = from + 1u;
	while (rowEnd < end && batch[p.seq + rowEnd] == batch[p.seq + row] && batch[p.pos + rowEnd] == batch[p.pos + row] + rowEnd - row) rowEnd++;
	pageTable = p.pages + batch[p.seq + row] * p.pageN;
	lo = ivec4(1); // nothing
	hi = ivec4(0);
	first = batch[p.lo + row];
	last = batch[p.hi + row];
	allFrom = first;
	allTo = last;
	for (uint i = 0u; i < p.queries; i++) {
		if (!there(i)) continue;
		uint from = batch[p.lo + rowOf(i)];
		uint to = batch[p.hi + rowOf(i)];
		lo[i] = int(from);
		hi[i] = int(to);
		first = min(first, from);
		last = max(last, to);
		allFrom = max(allFrom, from);
		allTo = min(allTo, to);
	}
}

vec4 sinksOf() {
	if (SUNK == 0u) return vec4(MASKED);
	vec4 x = vec4(0.0);
	for (uint i = 0u; i < p.queries; i++) x[i] = uintBitsToFloat(perHead[min(headOf(i), p.kvHeads * p.share - 1u)]);
	return x;
}

// e^(x − m).
vec4 relative(vec4 x, vec4 m) {
	PRECISE vec4 d = x - m;
	return exps(d);
}

// a·x + b·y, rounded three times in every mode and kernel.
vec4 blend(vec4 a, vec4 x, vec4 b, vec4 y) {
	PRECISE vec4 s = a * x;
	PRECISE vec4 t = b * y;
	PRECISE vec4 u = s + t;
	return u;
}

// s + a·x, likewise.
vec4 join(vec4 s, vec4 a, vec4 x) {
	PRECISE vec4 t = a * x;
	PRECISE vec4 u = s + t;
	return u;
}

// a·b, likewise.
vec4 times(vec4 a, vec4 b) {
	PRECISE vec4 t = a * b;
	return t;
}

// Four columns of four queries, by column.
struct Columns { vec4 c0; vec4 c1; vec4 c2; vec4 c3; };

Columns noColumns() { return Columns(vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0)); }

Columns blendColumns(vec4 a, Columns x, vec4 b, Columns y) {
	return Columns(blend(a, x.c0, b, y.c0), blend(a, x.c1, b, y.c1), blend(a, x.c2, b, y.c2), blend(a, x.c3, b, y.c3));
}

Columns timesColumns(Columns x, vec4 a) {
	return Columns(times(x.c0, a), times(x.c1, a), times(x.c2, a), times(x.c3, a));
}

Columns addColumns(Columns x, Columns y) {
	PRECISE vec4 c0 = x.c0 + y.c0;
	PRECISE vec4 c1 = x.c1 + y.c1;
	PRECISE vec4 c2 = x.c2 + y.c2;
	PRECISE vec4 c3 = x.c3 + y.c3;
	return Columns(c0, c1, c2, c3);
}

uint dstOf(uint query) { return p.dst + rowOf(query) * p.dstStride + headOf(query) * VALUE_DIM; }

// Writes columns 4·quad … of the queries. Software renderers compile every access to
// memory to a hundred instructions and more, so what is done for each query stands once.
void emit(uint quad, Columns a) {
	uint n = min(VALUE_DIM - 4u * quad, 4u);
	for (uint i = 0u; i < p.queries; i++) {
		if (!there(i)) continue;
		uint at = dstOf(i) + 4u * quad;
		vec4 x = vec4(a.c0[i], a.c1[i], a.c2[i], a.c3[i]);
		for (uint k = 0u; k < n; k++) store(at + k, x[k]);
	}
}

// What emit wrote.
Columns emitted(uint quad) {
	Columns a = noColumns();
	uint n = min(VALUE_DIM - 4u * quad, 4u);
	for (uint i = 0u; i < p.queries; i++) {
		if (!there(i)) continue;
		uint at = dstOf(i) + 4u * quad;
		vec4 x = vec4(0.0);
		for (uint k = 0u; k < n; k++) x[k] = load(at + k);
		a.c0[i] = x.x;
		a.c1[i] = x.y;
		a.c2[i] = x.z;
		a.c3[i] = x.w;
	}
	return a;
}

// part has for each workgroup and chunk, in vec4: the largest score, the sum of the
// exponentials, and then the exponentials by position (exact mode, between SCORES and
// VALUES) or the values by column.
#define PART_SUM 1u
#define PART_DATA 2u
#ifdef FAST
#define PART_SIZE (PART_DATA + 4u * QUADS)
#else
#define PART_SIZE (PART_DATA + max(CHUNK_SIZE, 4u * QUADS))
#endif

vec4 partLoad(uint at) { return uintBitsToFloat(part[at]); }
void partStore(uint at, vec4 x) { part[at] = floatBitsToUint(x); }

Columns partColumns(uint chunk, uint quad) {
	uint at = chunk + PART_DATA + 4u * quad;
	return Columns(partLoad(at), partLoad(at + 1u), partLoad(at + 2u), partLoad(at + 3u));
}

void partStoreColumns(uint chunk, uint quad, Columns a) {
	uint at = chunk + PART_DATA + 4u * quad;
	partStore(at, a.c0);
	partStore(at + 1u, a.c1);
	partStore(at + 2u, a.c2);
	partStore(at + 3u, a.c3);
}

#ifdef FAST
// A row so far, in fast mode: its largest score and its sum, and how the sums of columns
// before and of the new chunk enter the new ones.
struct Sofar { vec4 most; vec4 sum; vec4 before; vec4 now; };

Sofar nothing() { return Sofar(vec4(MASKED), vec4(0.0), vec4(0.0), vec4(0.0)); }

Sofar further(Sofar s, vec4 chunkMax, vec4 chunkSum) {
	vec4 most = max(s.most, chunkMax);
	vec4 before = relative(s.most, most);
	vec4 now = relative(chunkMax, most);
	return Sofar(most, blend(before, s.sum, now, chunkSum), before, now);
}

// What the sums of columns are multiplied by in the end.
vec4 ending(Sofar s) {
	if (SUNK == 0u) return recips(s.sum);
	vec4 sink = sinksOf();
	vec4 most = max(s.most, sink);
	vec4 rest = relative(s.most, most);
	return times(rest, recips(join(relative(sink, most), rest, s.sum)));
}
#endif

// Joins the chunks of the row that VALUES or CHUNK left in part from at on.
void joinChunks(uint at, uint chunks) {
	for (uint quad = gl_LocalInvocationID.x; quad < QUADS; quad += WG) {
		Columns a = noColumns();
#ifdef FAST
		Sofar s = nothing();
		for (uint i = 0u; i < chunks; i++) {
			uint chunk = at + i * PART_SIZE;
			s = further(s, partLoad(chunk), partLoad(chunk + PART_SUM));
			a = blendColumns(s.before, a, s.now, partColumns(chunk, quad));
		}
		a = timesColumns(a, ending(s));
#else
		for (uint i = 0u; i < chunks; i++) a = addColumns(a, partColumns(at + i * PART_SIZE, quad));
#endif
		emit(quad, a);
	}
}
