// Attention over a paged KV cache (rule 5 of gpu/DESIGN.md): out = softmax(scale·q·kᵀ)·v
// for rows of a batch, each over the positions of its own sequence.
//
// A workgroup takes one KV head and four queries that read it: HEADS query heads of ROWS
// rows, which stand together in the batch; rows of different sequences are done one
// after another. A query is a component of every vec4 here, so that a key or a value is
// loaded and widened once for four queries.
//
// A chunk of 256 positions is four pages of 64 cells. Scores: an invocation has one cell
// of each page and walks along the keys' units, which stand side by side for
// neighbouring invocations. Values: an invocation has four columns and walks along the
// cells. Between the two the scores stand in shared memory; sums over a chunk are the 16
// lanes of exact mode, in fast mode too.
//
// STAGE says what of it a dispatch does:
//   ALL      a workgroup does all chunks of its rows, one after another;
//   SCORES   (exact) one chunk: the exponentials, their largest score and sum, to `part`;
//   VALUES   (exact) one chunk, after SCORES: the weighed values, to `part`;
//   CHUNK    (fast) one chunk: values weighed by its own exponentials, to `part`.
// attention_join adds up what VALUES and CHUNK leave. Exact mode needs the largest score
// of all chunks before it may round a probability, so ALL takes the scores twice when
// there are several chunks: keeping the exponentials of a long prompt costs more memory
// than a GPU may have. Fast mode joins chunk to chunk in both ways by the same
// arithmetic (attention_rows.glsl), so that a row's bits do not depend on the stage.
//
// Rejected: splitting the cells of a chunk among more invocations where columns are few,
// which adds up in another order than exact mode allows.

#include "act.glsl"
#include "kv.glsl"

#define ALL 0u
#define SCORES 1u
#define VALUES 2u
#define CHUNK 3u

#if defined(KV_F16)
STORAGE(2) readonly buffer Keys { uvec4 keys[]; };
STORAGE(3) readonly buffer Values { uvec2 values[]; };
#define KEY_WORDS 4u
#elif defined(KV_F32)
STORAGE(2) readonly buffer Keys { uvec4 keys[]; };
STORAGE(3) readonly buffer Values { uvec4 values[]; };
#define KEY_WORDS 4u
#else
STORAGE(2) readonly buffer Keys { uvec2 keys[]; };
STORAGE(3) readonly buffer Values { uint values[]; };
#define KEY_WORDS 2u
#endif
#define VALUE_WORDS (KV_UNIT / 2u) // of four values
STORAGE(4) readonly buffer Sinks { uint sinks[]; };
STORAGE(5) readonly buffer Slopes { uint slopes[]; };
STORAGE(6) buffer Part { uvec4 part[]; };

#include "attention_rows.glsl"

// Shared memory: the queries by column, the chunk's scores by position, the 16 lanes,
// and in exact mode the largest score and the sum of the first chunks.
#define Q_UNITS ((KEY_DIM + 7u) / 8u)
#define SCORE (Q_UNITS * 8u)
#define LANE (SCORE + CHUNK_SIZE)
#define KEPT (LANE + 16u)
#ifdef FAST
#define KEPT_CHUNKS 0u
#else
#define KEPT_CHUNKS 64u
#endif
shared vec4 mem[(KEY_DIM + 7u) / 8u * 8u + CHUNK_SIZE + 16u + 2u * KEPT_CHUNKS];

// A column of a query.
float query(uint i, uint d) {
	if (!there(i) || d >= KEY_DIM) return 0.0;
	return load(p.q + rowOf(i) * p.qStride + headOf(i) * KEY_DIM + d);
}

// The queries as they meet the keys: over halves as halves.
void loadQueries() {
	for (uint d = gl_LocalInvocationID.x; d < SCORE; d += WG) {
		vec4 x = vec4(query(0u, d), query(1u, d), query(2u, d), query(3u, d));
#if defined(KV_F16) && !defined(FAST)
		x = roundHalves(x);
#endif
		mem[d] = x;
	}
	sync();
}

// Where the KV head begins on the page of a position.
uint headPage(uint page, uint dim) {
	uint n = batch[p.pages + batch[p.seq + row] * p.pageN + page];
	return kvHead(n, p.kvHeads, kvNumber, dim);
}

vec4 signedBytes(uint w) {
	ivec4 b = ivec4(int(w << 24), int(w << 16), int(w << 8), int(w)) >> 24;
	return vec4(b);
}

#ifdef KV_Q8
float keyScale(uint head, uint unit, uint cell) {
	uint half_ = scaleHalf(unit / 4u, cell, KEY_DIM);
	uint word = head + half_ / 2u;
	uvec2 two = keys[word / 2u];
	uint w = (word & 1u) == 0u ? two.x : two.y;
	return (half_ & 1u) == 0u ? lowHalf(w) : highHalf(w);
}
#endif

// A unit of a key: eight values.
void loadKey(uint head, uint unit, uint cell, out vec4 a, out vec4 b) {
	uint at = (head + keyUnit(unit, cell)) / KEY_WORDS;
#if defined(KV_F16)
	uvec4 w = keys[at];
	a = widened(w.xy);
	b = widened(w.zw);
#elif defined(KV_F32)
	a = uintBitsToFloat(keys[at]);
	b = uintBitsToFloat(keys[at + 1u]);
#else
	uvec2 w = keys[at];
	PRECISE vec4 d = vec4(keyScale(head, unit, cell));
	PRECISE vec4 x = signedBytes(w.x) * d;
	PRECISE vec4 y = signedBytes(w.y) * d;
	a = x;
	b = y;
#endif
}

// Four columns of a value.
vec4 loadValue(uint head, uint quad, uint cell) {
	uint at = (head + valueUnit(quad / 2u, cell, VALUE_DIM)) / VALUE_WORDS + (quad & 1u);
#if defined(KV_F16)
	return widened(values[at]);
#elif defined(KV_F32)
	return uintBitsToFloat(values[at]);
#else
	uint half_ = scaleHalf(quad / 8u, cell, VALUE_DIM);
	uint w = values[head + half_ / 2u];
	PRECISE vec4 d = vec4((half_ & 1u) == 0u ? lowHalf(w) : highHalf(w));
	PRECISE vec4 x = signedBytes(values[at]) * d;
	return x;
#endif
}

#ifdef FAST
// Adds the products of eight columns of the queries and of a key.
vec4 eight(vec4 sum, uint q, vec4 a, vec4 b) {
	sum = mem[q] * a.x + sum;
	sum = mem[q + 1u] * a.y + sum;
	sum = mem[q + 2u] * a.z + sum;
	sum = mem[q + 3u] * a.w + sum;
	sum = mem[q + 4u] * b.x + sum;
	sum = mem[q + 5u] * b.y + sum;
	sum = mem[q + 6u] * b.z + sum;
	sum = mem[q + 7u] * b.w + sum;
	return sum;
}

vec4 dotKey(uint head, uint cell) {
	PRECISE vec4 sum = vec4(0.0);
	vec4 a;
	vec4 b;
	for (uint u = 0u; u < Q_UNITS; u++) {
		loadKey(head, u, cell, a, b);
		sum = eight(sum, 8u * u, a, b);
	}
	return sum;
}
#else
// A column belongs to lane d mod 16: the even units have lanes 0 to 7, the odd ones 8 to
// 15, which the first step of the fold adds to them.
vec4 dotKey(uint head, uint cell) {
	PRECISE vec4 s0; PRECISE vec4 s1; PRECISE vec4 s2; PRECISE vec4 s3;
	PRECISE vec4 s4; PRECISE vec4 s5; PRECISE vec4 s6; PRECISE vec4 s7;
	PRECISE vec4 f0 = vec4(0.0); PRECISE vec4 f1 = f0; PRECISE vec4 f2 = f0; PRECISE vec4 f3 = f0;
	PRECISE vec4 f4 = f0; PRECISE vec4 f5 = f0; PRECISE vec4 f6 = f0; PRECISE vec4 f7 = f0;
	PRECISE vec4 t;
	vec4 a;
	vec4 b;
	for (uint odd = 0u; odd < 2u; odd++) {
		s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = vec4(0.0);
		for (uint u = odd; u < Q_UNITS; u += 2u) {
			loadKey(head, u, cell, a, b);
			uint q = 8u * u;
			t = mem[q] * a.x; s0 = s0 + t;
			t = mem[q + 1u] * a.y; s1 = s1 + t;
			t = mem[q + 2u] * a.z; s2 = s2 + t;
			t = mem[q + 3u] * a.w; s3 = s3 + t;
			t = mem[q + 4u] * b.x; s4 = s4 + t;
			t = mem[q + 5u] * b.y; s5 = s5 + t;
			t = mem[q + 6u] * b.z; s6 = s6 + t;
			t = mem[q + 7u] * b.w; s7 = s7 + t;
		}
		f0 = f0 + s0; f1 = f1 + s1; f2 = f2 + s2; f3 = f3 + s3;
		f4 = f4 + s4; f5 = f5 + s5; f6 = f6 + s6; f7 = f7 + s7;
	}
	f0 = f0 + f4; f1 = f1 + f5; f2 = f2 + f6; f3 = f3 + f7;
	f0 = f0 + f2; f1 = f1 + f3;
	t = f0 + f1;
	return t;
}
#endif

bvec4 seen(uint j) {
	ivec4 at = ivec4(int(j));
	bvec4 a = lessThanEqual(lo, at);
	bvec4 b = lessThanEqual(at, hi);
	return bvec4(a.x && b.x, a.y && b.y, a.z && b.z, a.w && b.w);
}

// A dot product as the score of position j.
vec4 scored(vec4 dot_, uint j) {
	PRECISE vec4 s = dot_ * p.scale;
	if (p.cap > 0.0) {
		PRECISE vec4 t = s * p.invCap;
		t = tanhs(t);
		s = t * p.cap;
	}
	if (p.sloped != 0u) {
		PRECISE vec4 bias = PER_HEAD(slopes) * vec4(ivec4(int(j)) - hi);
		s = s + bias;
	}
	return s;
}

// Whether any query sees a cell of a page.
bool needed(uint page) { return page >= first / KV_CELLS && page <= last / KV_CELLS; }

// The largest of the chunk's scores. The scores were written before the last sync.
vec4 largest() {
	uint lane = gl_LocalInvocationID.x;
	if (lane < 16u) {
		vec4 m = mem[SCORE + lane];
		for (uint i = 1u; i < 16u; i++) m = max(m, mem[SCORE + 16u * i + lane]);
		mem[LANE + lane] = m;
	}
	sync();
	vec4 m = mem[LANE];
	for (uint i = 1u; i < 16u; i++) m = max(m, mem[LANE + i]);
	return m;
}

// The sum of the chunk's exponentials, likewise.
vec4 total() {
	uint lane = gl_LocalInvocationID.x;
	if (lane < 16u) {
		PRECISE vec4 s = vec4(0.0);
		for (uint i = 0u; i < 16u; i++) s = s + mem[SCORE + 16u * i + lane];
		mem[LANE + lane] = s;
	}
	sync();
	PRECISE vec4 a0 = mem[LANE] + mem[LANE + 8u];
	PRECISE vec4 a1 = mem[LANE + 1u] + mem[LANE + 9u];
	PRECISE vec4 a2 = mem[LANE + 2u] + mem[LANE + 10u];
	PRECISE vec4 a3 = mem[LANE + 3u] + mem[LANE + 11u];
	PRECISE vec4 a4 = mem[LANE + 4u] + mem[LANE + 12u];
	PRECISE vec4 a5 = mem[LANE + 5u] + mem[LANE + 13u];
	PRECISE vec4 a6 = mem[LANE + 6u] + mem[LANE + 14u];
	PRECISE vec4 a7 = mem[LANE + 7u] + mem[LANE + 15u];
	PRECISE vec4 b0 = a0 + a4;
	PRECISE vec4 b1 = a1 + a5;
	PRECISE vec4 b2 = a2 + a6;
	PRECISE vec4 b3 = a3 + a7;
	PRECISE vec4 c0 = b0 + b2;
	PRECISE vec4 c1 = b1 + b3;
	PRECISE vec4 d = c0 + c1;
	return d;
}

// The scores of chunk c, into shared memory; the largest comes back.
vec4 scores(uint c) {
	uint cell = gl_LocalInvocationID.x;
	for (uint i = 0u; i < 4u; i++) {
		uint page = 4u * c + i;
		uint j = KV_CELLS * page + cell;
		vec4 s = vec4(MASKED);
		if (needed(page)) s = mix(s, scored(dotKey(headPage(page, KEY_DIM), cell), j), seen(j));
		mem[SCORE + KV_CELLS * i + cell] = s;
	}
	sync();
	return largest();
}

// The exponentials of the scores of chunk c relative to m, in their place; their sum
// comes back.
vec4 exponentials(uint c, vec4 m) {
	uint cell = gl_LocalInvocationID.x;
	for (uint i = 0u; i < 4u; i++) {
		uint at = SCORE + KV_CELLS * i + cell;
		uint j = CHUNK_SIZE * c + KV_CELLS * i + cell;
		mem[at] = mix(vec4(0.0), relative(mem[at], m), seen(j));
	}
	sync();
	return total();
}

#ifndef FAST
// The exponentials of a chunk as probabilities, over halves as halves.
void probabilities(vec4 weight) {
	uint cell = gl_LocalInvocationID.x;
	for (uint i = 0u; i < 4u; i++) {
		uint at = SCORE + KV_CELLS * i + cell;
		vec4 e = times(mem[at], weight);
#ifdef KV_F16
		e = roundHalves(e);
#endif
		mem[at] = e;
	}
	sync();
}
#endif

// Columns 4·quad … of the values of chunk c, weighed by what stands in the place of the
// scores. A value that a query does not see may be anything, NaN too.
Columns weighed(uint c, uint quad) {
	PRECISE vec4 s0 = vec4(0.0); PRECISE vec4 s1 = s0; PRECISE vec4 s2 = s0; PRECISE vec4 s3 = s0;
	PRECISE vec4 t0; PRECISE vec4 t1; PRECISE vec4 t2; PRECISE vec4 t3;
	uint allFrom = uint(oldest(int(last)));
	uint allTo = uint(hi.x);
	uint from = max(first, CHUNK_SIZE * c);
	uint to = min(last, CHUNK_SIZE * c + CHUNK_SIZE - 1u);
	for (uint page = from / KV_CELLS; page <= to / KV_CELLS; page++) {
		uint head = headPage(page, VALUE_DIM);
		uint end = min(to, KV_CELLS * page + KV_CELLS - 1u);
		for (uint j = max(from, KV_CELLS * page); j <= end; j++) {
			vec4 e = mem[SCORE + j % CHUNK_SIZE];
			vec4 v = loadValue(head, quad, j % KV_CELLS);
			t0 = e * v.x;
			t1 = e * v.y;
			t2 = e * v.z;
			t3 = e * v.w;
			if (ROWS > 1u && (j < allFrom || j > allTo)) {
				bvec4 on = seen(j);
				t0 = mix(vec4(0.0), t0, on);
				t1 = mix(vec4(0.0), t1, on);
				t2 = mix(vec4(0.0), t2, on);
				t3 = mix(vec4(0.0), t3, on);
			}
			s0 = s0 + t0;
			s1 = s1 + t1;
			s2 = s2 + t2;
			s3 = s3 + t3;
		}
	}
	return Columns(s0, s1, s2, s3);
}

#ifndef FAST
// What all chunks of a row have in common: the largest score and 1 / the sum.
struct Whole { vec4 most; vec4 recip; };

// The sum over the chunks ends with the sink.
Whole whole(vec4 most, vec4 sum) {
	if (p.sunk == 0u) return Whole(most, recips(sum));
	PRECISE vec4 s = sum + relative(sinksOf(), most);
	return Whole(most, recips(s));
}

// The weight of a chunk in the row.
vec4 weight(vec4 chunkMax, Whole w) { return times(relative(chunkMax, w.most), w.recip); }

// The exponentials of a chunk, between shared memory and part.
void partStoreExps(uint chunk) {
	for (uint i = gl_LocalInvocationID.x; i < CHUNK_SIZE; i += WG) partStore(chunk + PART_DATA + i, mem[SCORE + i]);
}

void partLoadExps(uint chunk) {
	for (uint i = gl_LocalInvocationID.x; i < CHUNK_SIZE; i += WG) mem[SCORE + i] = partLoad(chunk + PART_DATA + i);
	sync();
}

Whole partWhole(uint at, uint chunks) {
	vec4 most = sinksOf();
	for (uint i = 0u; i < chunks; i++) most = max(most, partLoad(at + i * PART_SIZE));
	vec4 sum = vec4(0.0);
	for (uint i = 0u; i < chunks; i++) {
		uint chunk = at + i * PART_SIZE;
		sum = join(sum, partLoad(chunk + PART_SUM), relative(partLoad(chunk), most));
	}
	return whole(most, sum);
}

Whole keptWhole(vec4 most, uint chunks) {
	vec4 sum = vec4(0.0);
	for (uint i = 0u; i < chunks; i++) sum = join(sum, mem[KEPT + 2u * i + 1u], relative(mem[KEPT + 2u * i], most));
	return whole(most, sum);
}
#endif

// Does the rows' chunks, all of them or the one of a slot. In exact mode there are up to
// three passes: the largest score; the sum, where the chunks' own did not all fit; the
// values.
void chunks(uint unit, uint slot) {
	uint from = first / CHUNK_SIZE;
	uint to = last / CHUNK_SIZE;
	uint count = to - from + 1u;
	uint at = (row * p.kvHeads * headGroups() + unit) * p.chunks * PART_SIZE;
	uint chunk = at + slot * PART_SIZE;
	if (STAGE != ALL) {
		if (from + slot > to) return;
		from = from + slot;
		to = from;
	}
#ifdef FAST
	const uint passes = 1u;
	Sofar s = nothing();
#else
	uint passes = STAGE != ALL || count == 1u ? 1u : count <= KEPT_CHUNKS ? 2u : 3u;
	vec4 most = sinksOf();
	vec4 sum = vec4(0.0);
	Whole w = Whole(most, sum);
	if (STAGE == VALUES) w = partWhole(at, count);
#endif
	for (uint pass = 0u; pass < passes; pass++) {
		for (uint c = from; c <= to; c++) {
			vec4 m = vec4(0.0);
			vec4 l = m;
			if (STAGE != VALUES) {
				m = scores(c);
				l = exponentials(c, m);
			}
			if ((STAGE == SCORES || STAGE == CHUNK) && gl_LocalInvocationID.x == 0u) {
				partStore(chunk, m);
				partStore(chunk + PART_SUM, l);
			}
#ifdef FAST
			s = further(s, m, l);
#else
			if (STAGE == SCORES) {
				partStoreExps(chunk);
				return;
			}
			if (STAGE == VALUES) {
				m = partLoad(chunk);
				partLoadExps(chunk);
			} else if (pass == 0u) {
				most = max(most, m);
				if (gl_LocalInvocationID.x == 0u && c - from < KEPT_CHUNKS) {
					mem[KEPT + 2u * (c - from)] = m;
					mem[KEPT + 2u * (c - from) + 1u] = l;
				}
				if (c == to && passes < 3u) {
					sync();
					w = keptWhole(most, count);
				}
			} else if (passes == 3u && pass == 1u) {
				sum = join(sum, l, relative(m, most));
				if (c == to) w = whole(most, sum);
			}
			if (pass + 1u < passes) continue;
			probabilities(weight(m, w));
#endif
			for (uint quad = gl_LocalInvocationID.x; quad < QUADS; quad += WG) {
				Columns a = weighed(c, quad);
				if (STAGE != ALL) {
					partStoreColumns(chunk, quad, a);
					continue;
				}
				Columns b = noColumns();
				if (c > from) b = emitted(quad);
#ifdef FAST
				a = blendColumns(s.before, b, s.now, a);
				if (c == to) a = timesColumns(a, ending(s));
#else
				a = addColumns(b, a);
#endif
				emit(quad, a);
			}
			sync();
		}
	}
}

void main() {
	selectHeads(gl_WorkGroupID.x / p.chunks);
	uint from = gl_WorkGroupID.y * ROWS;
	uint end = min(from + ROWS, batch[p.rows]);
	while (from < end) {
		selectRows(from, end);
		loadQueries();
		chunks(gl_WorkGroupID.x / p.chunks, gl_WorkGroupID.x % p.chunks);
		from = rowEnd;
	}
}
