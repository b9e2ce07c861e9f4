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
// The last workgroup of a row and its heads adds up what VALUES and CHUNK leave. Exact mode needs the largest score
// of all chunks before it may round a probability, so ALL takes the scores twice when
// there are several chunks: keeping the exponentials of a long prompt costs more memory
// than a GPU may have. Fast mode joins chunk to chunk in both ways by the same
// arithmetic (attention_rows.glsl), so that a row's bits do not depend on the stage.
//
// Rejected: splitting the cells of a chunk among more invocations where columns are few,
// which adds up in another order than exact mode allows.

#define ACT_ACCESS coherent
#include "act.glsl"
#include "kv.glsl"

#define ALL 0u
#define SCORES 1u
#define VALUES 2u
#define CHUNK 3u

#ifdef TEXEL
TEXELS(2) uniform highp usamplerBuffer keys;
TEXELS(3) uniform highp usamplerBuffer values;
TEXELS(7) uniform highp usamplerBuffer queries;
#define FETCH(name, i) texelFetch(name, int(i))
#else
STORAGE(2) readonly buffer Keys { uvec4 keys[]; };
STORAGE(3) readonly buffer Values { uvec4 values[]; };
#define FETCH(name, i) name[i]
#endif
STORAGE(4) readonly buffer Heads { uint perHead[]; }; // sinks, if there are any, then slopes
STORAGE(5) coherent buffer Counts { uint counts[]; };
STORAGE(6) coherent buffer Part { uvec4 part[]; };

#include "attention_rows.glsl"
#define outs part
#include "attention_whole.glsl"
#include "arrive.glsl"

// Pages whose scores an invocation takes at once, and neighbouring columns, in fours,
// whose values it does.
#ifdef FAST
#define PAGES 4u
#elif defined(TEXEL)
#define PAGES 2u
#else
#define PAGES 1u
#endif
#ifdef TEXEL
#define SPAN 2u
#else
#define SPAN 1u
#endif

// Shared memory: the chunk's exponentials by position, in fast mode as halves; something
// of each invocation that is being reduced; in exact mode the largest score and the sum
// of the first chunks; the queries, which a variant with texels fetches instead.
#ifdef FAST
shared uvec2 weights[CHUNK_SIZE];
#else
shared vec4 weights[CHUNK_SIZE];
#endif
#define LANE 0u
#define KEPT WG
#ifdef FAST
#define KEPT_CHUNKS 0u
#else
#define KEPT_CHUNKS 63u // 64 and keys of 576 columns would be 4 bytes more than 16 KiB
#endif
#define QUERY (KEPT + 2u * KEPT_CHUNKS)
#define QUERY_QUADS ((KEY_DIM + 7u) / 8u * 2u)
#ifdef TEXEL
shared vec4 mem[KEPT + 2u * KEPT_CHUNKS];
#else
shared vec4 mem[QUERY + 4u * QUERY_QUADS];
#endif

#define Q_UNITS ((KEY_DIM + 7u) / 8u)
uint queryAt[4]; // where each query begins

#ifdef TEXEL
vec4 queryQuad(uint i, uint quad) { return uintBitsToFloat(FETCH(queries, queryAt[i] + quad)); }

void loadQueries() {
	for (uint i = 0u; i < 4u; i++) {
		uint j = there(i) ? i : 0u;
		queryAt[i] = p.q + rowOf(j) * p.qStride + headOf(j) * p.qHead;
	}
	sync();
}
#else
vec4 queryQuad(uint i, uint quad) { return mem[queryAt[i] + quad]; }

// A column of a query.
float query(uint i, uint d) {
	if (!there(i) || d >= KEY_DIM) return 0.0;
	return load(p.q + rowOf(i) * p.qStride + headOf(i) * p.qHead + d);
}

// The queries as they meet the keys: over halves as halves.
void loadQueries() {
	for (uint i = 0u; i < 4u; i++) queryAt[i] = QUERY + i * QUERY_QUADS;
	for (uint n = gl_LocalInvocationID.x; n < 4u * QUERY_QUADS; n += WG) {
		uint i = n / QUERY_QUADS;
		uint d = n % QUERY_QUADS * 4u;
		vec4 x = vec4(query(i, d), query(i, d + 1u), query(i, d + 2u), query(i, d + 3u));
#if defined(KV_F16) && !defined(FAST)
		x = roundHalves(x);
#endif
		mem[QUERY + n] = x;
	}
	sync();
}
#endif

// Where the KV head begins on the page of a position.
uint headPage(uint page, uint dim) {
	uint n = batch[pageTable + page];
	return kvHead(n, p.kvHeads, kvNumber, dim);
}

vec4 signedBytes(uint w) {
	ivec4 b = ivec4(int(w << 24), int(w << 16), int(w << 8), int(w)) >> 24;
	return vec4(b);
}

#ifdef KV_Q8
// The half n of a head, from a texel that has it.
float scaleOf(uvec4 v, uint n) {
	uint i = n / 2u % 4u;
	uint w = i < 2u ? (i == 0u ? v.x : v.y) : (i == 2u ? v.z : v.w);
	return (n & 1u) == 0u ? lowHalf(w) : highHalf(w);
}

uvec2 pairOf(uvec4 v, uint at) { return (at & 2u) == 0u ? v.xy : v.zw; }

vec4 scaledBytes(uint w, float d) {
	PRECISE vec4 x = signedBytes(w) * d;
	return x;
}
#endif

// A unit of a key: eight values.
void loadKey(uint head, uint unit, uint cell, out vec4 a, out vec4 b) {
	uint at = head + keyUnit(unit, cell);
	uvec4 v = FETCH(keys, at / 4u);
#if defined(KV_F16)
	a = widened(v.xy);
	b = widened(v.zw);
#elif defined(KV_F32)
	a = uintBitsToFloat(v);
	b = uintBitsToFloat(FETCH(keys, at / 4u + 1u));
#else
	uint n = scaleHalf(unit / 4u, cell, KEY_DIM);
	float d = scaleOf(FETCH(keys, (head + n / 2u) / 4u), n);
	uvec2 w = pairOf(v, at);
	a = scaledBytes(w.x, d);
	b = scaledBytes(w.y, d);
#endif
}

// Columns 4·quad … of a value.
void loadValue(uint head, uint quad, uint cell, out vec4 x[SPAN]) {
	uint at = head + valueUnit(quad / 2u, cell, VALUE_DIM);
#if defined(KV_F32)
	for (uint i = 0u; i < SPAN; i++) x[i] = uintBitsToFloat(FETCH(values, at / 4u + quad % 2u + i));
#else
	uvec4 v = FETCH(values, at / 4u);
#if defined(KV_F16)
	for (uint i = 0u; i < SPAN; i++) x[i] = widened((quad + i) % 2u == 0u ? v.xy : v.zw);
#else
	uint n = scaleHalf(quad / 8u, cell, VALUE_DIM);
	float d = scaleOf(FETCH(values, (head + n / 2u) / 4u), n);
	uvec2 w = pairOf(v, at);
	for (uint i = 0u; i < SPAN; i++) x[i] = scaledBytes((quad + i) % 2u == 0u ? w.x : w.y, d);
#endif
#endif
}

#ifdef FAST
// The products of the queries with the keys of some pages, for the invocation's cell.
void products(uint head[PAGES], uint cell, out vec4 result[PAGES]) {
	vec4 sum[PAGES];
	vec4 a;
	vec4 b;
	for (uint i = 0u; i < PAGES; i++) sum[i] = vec4(0.0);
	for (uint u = 0u; u < Q_UNITS; u++) {
		vec4 q0 = queryQuad(0u, 2u * u);
		vec4 r0 = queryQuad(0u, 2u * u + 1u);
		vec4 q1 = queryQuad(1u, 2u * u);
		vec4 r1 = queryQuad(1u, 2u * u + 1u);
		vec4 q2 = queryQuad(2u, 2u * u);
		vec4 r2 = queryQuad(2u, 2u * u + 1u);
		vec4 q3 = queryQuad(3u, 2u * u);
		vec4 r3 = queryQuad(3u, 2u * u + 1u);
		for (uint i = 0u; i < PAGES; i++) {
			loadKey(head[i], u, cell, a, b);
			sum[i] += vec4(dot(q0, a), dot(q1, a), dot(q2, a), dot(q3, a)) +
				vec4(dot(r0, b), dot(r1, b), dot(r2, b), dot(r3, b));
		}
	}
	result = sum;
}
#else
// The same. A column belongs to lane d mod 16: even units have lanes 0 to 7, odd ones 8
// to 15, which the first step of the fold adds to them. A vec4 here has four lanes.
void products(uint head[PAGES], uint cell, out vec4 result[PAGES]) {
	PRECISE vec4 low[4u * PAGES];  // lanes 0 to 3 and 8 to 11, by page and query
	PRECISE vec4 high[4u * PAGES]; // lanes 4 to 7 and 12 to 15
	PRECISE vec4 l[4u * PAGES];
	PRECISE vec4 h[4u * PAGES];
	PRECISE vec4 t;
	vec4 a;
	vec4 b;
	for (uint k = 0u; k < 4u * PAGES; k++) low[k] = high[k] = l[k] = h[k] = vec4(0.0);
	uint evens = (Q_UNITS + 1u) / 2u;
	for (uint n = 0u; n < Q_UNITS; n++) {
		uint u = n < evens ? 2u * n : 2u * (n - evens) + 1u;
		if (n == evens) {
			for (uint k = 0u; k < 4u * PAGES; k++) {
				low[k] = l[k];
				high[k] = h[k];
				l[k] = h[k] = vec4(0.0);
			}
		}
		vec4 q[8];
		for (uint k = 0u; k < 8u; k++) q[k] = queryQuad(k / 2u, 2u * u + k % 2u);
		for (uint i = 0u; i < PAGES; i++) {
			loadKey(head[i], u, cell, a, b);
			for (uint k = 0u; k < 4u; k++) {
				t = q[2u * k] * a;
				l[4u * i + k] = l[4u * i + k] + t;
				t = q[2u * k + 1u] * b;
				h[4u * i + k] = h[4u * i + k] + t;
			}
		}
	}
	for (uint k = 0u; k < 4u * PAGES; k++) {
		low[k] = low[k] + l[k];
		high[k] = high[k] + h[k];
	}
	for (uint i = 0u; i < PAGES; i++) {
		for (uint k = 0u; k < 4u; k++) {
			t = low[4u * i + k] + high[4u * i + k];
			PRECISE float even = t.x + t.z;
			PRECISE float odd = t.y + t.w;
			PRECISE float sum = even + odd;
			low[4u * i + k].x = sum;
		}
		result[i] = vec4(low[4u * i].x, low[4u * i + 1u].x, low[4u * i + 2u].x, low[4u * i + 3u].x);
	}
}
#endif

bvec4 seen(uint j) {
	ivec4 at = ivec4(int(j));
	bvec4 a = lessThanEqual(lo, at);
	bvec4 b = lessThanEqual(at, hi);
	return bvec4(a.x && b.x, a.y && b.y, a.z && b.z, a.w && b.w);
}

vec4 slopesOf() {
	vec4 x = vec4(0.0);
	uint heads = p.kvHeads * p.share;
	for (uint i = 0u; i < p.queries; i++) x[i] = uintBitsToFloat(perHead[SUNK * heads + min(headOf(i), heads - 1u)]);
	return x;
}

// A dot product as the score of position j.
vec4 scored(vec4 dot_, uint j) {
	PRECISE vec4 s = dot_ * p.scale;
	if (CAPPED != 0u) {
		PRECISE vec4 t = s * p.invCap;
		t = tanhs(t);
		s = t * p.cap;
	}
	if (SLOPED != 0u) {
		PRECISE vec4 bias = slopesOf() * vec4(ivec4(int(j)) - hi);
		s = s + bias;
	}
	return s;
}

vec4 own[4]; // the invocation's scores or exponentials, by page

// The largest x of all invocations.
vec4 largest(vec4 x) {
	uint lane = gl_LocalInvocationID.x;
	sync(); // the last sum is read
	mem[LANE + lane] = x;
	sync();
	if (lane < 8u) {
		for (uint i = lane + 8u; i < WG; i += 8u) x = max(x, mem[LANE + i]);
		mem[LANE + lane] = x;
	}
	sync();
	if (lane == 0u) {
		for (uint i = lane + 1u; i < 8u; i++) x = max(x, mem[LANE + i]);
		mem[LANE] = x;
	}
	sync();
	return mem[LANE];
}

#ifdef FAST
// The sum of the chunk's exponentials.
vec4 total() {
	uint lane = gl_LocalInvocationID.x;
	PRECISE vec4 x = own[0] + own[1];
	x = x + own[2];
	x = x + own[3];
	sync(); // largest is read
	mem[LANE + lane] = x;
	sync();
	if (lane < 8u) {
		for (uint i = lane + 8u; i < WG; i += 8u) x = x + mem[LANE + i];
		mem[LANE + lane] = x;
	}
	sync();
	if (lane == 0u) {
		for (uint i = lane + 1u; i < 8u; i++) x = x + mem[LANE + i];
		mem[LANE] = x;
	}
	sync();
	return mem[LANE];
}
#else
// The sum of the chunk's exponentials in 16 lanes, by position.
vec4 total() {
	uint lane = gl_LocalInvocationID.x;
	sync(); // the exponentials are there, largest is read
	if (lane < 16u) {
		PRECISE vec4 s = vec4(0.0);
		for (uint i = lane; i < CHUNK_SIZE; i += 16u) s = s + weights[i];
		mem[LANE + lane] = s;
	}
	for (uint n = 2u * p.queries; n > 0u; n /= 2u) {
		sync();
		if (lane < n) {
			PRECISE vec4 s = mem[LANE + lane] + mem[LANE + lane + n];
			mem[LANE + lane] = s;
		}
	}
	sync();
	return mem[LANE];
}
#endif

// The scores of chunk c; the largest comes back. Of pages that are taken together with
// one that a query sees, those that none sees may be anything.
vec4 scores(uint c) {
	uint cell = gl_LocalInvocationID.x;
	vec4 most = vec4(MASKED);
	for (uint side = 0u; side < 4u; side += PAGES) {
		uint head[PAGES];
		vec4 s[PAGES];
		uint page = 4u * c + side;
		uint from = max(page, first / KV_CELLS);
		uint to = min(page + PAGES - 1u, last / KV_CELLS);
		if (from <= to) {
			for (uint i = 0u; i < PAGES; i++) head[i] = headPage(clamp(page + i, from, to), KEY_DIM);
			products(head, cell, s);
		}
		for (uint i = 0u; i < PAGES; i++) {
			uint j = KV_CELLS * (page + i) + cell;
			own[side + i] = vec4(MASKED);
			if (from <= to) own[side + i] = mix(vec4(MASKED), scored(s[i], j), seen(j));
			most = max(most, own[side + i]);
		}
	}
	return largest(most);
}

// The exponentials of the scores of chunk c relative to m; their sum comes back.
vec4 exponentials(uint c, vec4 m) {
	uint cell = gl_LocalInvocationID.x;
	for (uint i = 0u; i < 4u; i++) {
		uint j = CHUNK_SIZE * c + KV_CELLS * i + cell;
		own[i] = mix(vec4(0.0), relative(own[i], m), seen(j));
#ifdef FAST
		uvec2 h = uvec2(packHalf2x16(own[i].xy), packHalf2x16(own[i].zw));
		weights[KV_CELLS * i + cell] = h;
		own[i] = widened(h); // what is added up is what is kept
#else
		weights[KV_CELLS * i + cell] = own[i];
#endif
	}
	return total();
}

#ifndef FAST
// The exponentials of a chunk as probabilities, over halves as halves.
void probabilities(vec4 weight) {
	for (uint i = 0u; i < 4u; i++) {
		vec4 e = times(own[i], weight);
#ifdef KV_F16
		e = roundHalves(e);
#endif
		weights[KV_CELLS * i + gl_LocalInvocationID.x] = e;
	}
	sync();
}
#endif

// Columns 4·quad … of the values of chunk c, weighed by what stands in the place of the
// scores. A value that a query does not see may be anything, NaN too.
void weighed(uint c, uint quad, out Columns result[SPAN]) {
	PRECISE vec4 sum[4u * SPAN];
	PRECISE vec4 t;
	vec4 v[SPAN];
	for (uint k = 0u; k < 4u * SPAN; k++) sum[k] = vec4(0.0);
	uint from = max(first, CHUNK_SIZE * c);
	uint to = min(last, CHUNK_SIZE * c + CHUNK_SIZE - 1u);
	for (uint page = from / KV_CELLS; page <= to / KV_CELLS; page++) {
		uint head = headPage(page, VALUE_DIM);
		uint end = min(to, KV_CELLS * page + KV_CELLS - 1u);
		for (uint j = max(from, KV_CELLS * page); j <= end; j++) {
#ifdef FAST
			vec4 e = widened(weights[j % CHUNK_SIZE]);
#else
			vec4 e = weights[j % CHUNK_SIZE];
#endif
			loadValue(head, quad, j % KV_CELLS, v);
			if (ROWS > 1u && (j < allFrom || j > allTo)) {
				bvec4 on = seen(j);
				for (uint k = 0u; k < 4u * SPAN; k++) {
					t = e * v[k / 4u][k % 4u];
					sum[k] = sum[k] + mix(vec4(0.0), t, on);
				}
			} else {
				for (uint k = 0u; k < 4u * SPAN; k++) {
					t = e * v[k / 4u][k % 4u];
					sum[k] = sum[k] + t;
				}
			}
		}
	}
	for (uint i = 0u; i < SPAN; i++) result[i] = Columns(sum[4u * i], sum[4u * i + 1u], sum[4u * i + 2u], sum[4u * i + 3u]);
}

#ifndef FAST
// What all chunks of a row have in common: the largest score and 1 / the sum.
struct Whole { vec4 most; vec4 recip; };

// The sum over the chunks ends with the sink.
Whole whole(vec4 most, vec4 sum) {
	if (SUNK == 0u) return Whole(most, recips(sum));
	PRECISE vec4 s = sum + relative(sinksOf(), most);
	return Whole(most, recips(s));
}

// The weight of a chunk in the row.
vec4 weight(vec4 chunkMax, Whole w) { return times(relative(chunkMax, w.most), w.recip); }

// The invocation's exponentials, to part and from it.
void partStoreExps(uint chunk) {
	for (uint i = 0u; i < 4u; i++) partStore(chunk + PART_DATA + KV_CELLS * i + gl_LocalInvocationID.x, own[i]);
}

void partLoadExps(uint chunk) {
	for (uint i = 0u; i < 4u; i++) own[i] = partLoad(chunk + PART_DATA + KV_CELLS * i + gl_LocalInvocationID.x);
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
			for (uint quad = SPAN * gl_LocalInvocationID.x; quad < QUADS; quad += SPAN * WG) {
				Columns a[SPAN];
				weighed(c, quad, a);
				for (uint i = 0u; i < SPAN && quad + i < QUADS; i++) {
					if (STAGE != ALL) {
						partStoreColumns(chunk, quad + i, a[i]);
						continue;
					}
					Columns b = noColumns();
					if (c > from) b = emitted(quad + i);
#ifdef FAST
					b = blendColumns(s.before, b, s.now, a[i]);
					if (c == to) b = timesColumns(b, ending(s));
#else
					b = addColumns(b, a[i]);
#endif
					emit(quad + i, b);
				}
			}
			sync();
		}
	}
}

// Whether the workgroup has all of its rows, joined where chunks were apart.
bool complete(uint unit, uint slot) {
	if (STAGE == SCORES) return false;
	if (STAGE == ALL) return true;
	uint count = last / CHUNK_SIZE - first / CHUNK_SIZE + 1u;
	uint at = row * p.kvHeads * headGroups() + unit;
	if (slot >= count || !isLast(at, count)) return false;
	joinChunks(at * p.chunks * PART_SIZE, count);
	return true;
}

void main() {
	uint unit = gl_WorkGroupID.x / p.chunks;
	uint slot = gl_WorkGroupID.x % p.chunks;
	selectHeads(unit);
	uint from = gl_WorkGroupID.y * ROWS;
	uint end = min(from + ROWS, batch[p.rows]);
	while (from < end) {
		selectRows(from, end);
		loadQueries();
		chunks(unit, slot);
		if (complete(unit, slot)) putWholes();
		from = rowEnd;
	}
}
