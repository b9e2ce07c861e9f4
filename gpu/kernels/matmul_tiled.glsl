// The product of a packed matrix of whole numbers with many rows of activations, by tiles:
// out[row] = W·x[row], W: [rows of W, columns], x: [rows, columns].
//
// A workgroup makes 64 rows of W (two tiles) times WG/4 rows of x. It goes through the
// columns by half blocks: 16 columns of both sides are brought into shared memory as
// floats, each weight unpacked once, and an invocation multiplies four rows of W with four
// rows of x, so that a value read from shared memory is used four times. matmul.glsl, which
// is for few rows, reads and unpacks all of W again for every four.
//
// A row has the bits that matmul.glsl gives it. Sums of a group are exact, in any order;
// the eight lanes of gpu/DESIGN.md, rule 2, are gone through one after another, the blocks
// of one lane in ascending order, and folded as they end: lane after lane in the order
// 0 4 2 6 1 5 3 7, of which neighbours are added, then neighbouring sums, then these. So
// an element needs four accumulators and not eight.
//
// With DOT4 shared memory has bytes, of which dot products are made (dot4.glsl).
#define WROWS 64u
#define COUNT (WG / 4u)       // rows of x
#define WSTEP WROWS           // from quad to quad
#define XSTEP (COUNT + 2u)    // likewise: quads of neighbours are in different banks
#include "whole.glsl"
#ifdef DOT4
#include "dot4.glsl"
#define Values uint
#define Sums ivec4
#else
#define Values vec4
#define Sums vec4
#endif
#define XBLOCK (XTEXELS + 1u)

shared Values ws[4u * WSTEP]; // [quad of columns][row of W]
shared Values xHighs[4u * XSTEP];
#if defined(EXACT) || defined(DOT4)
shared Values xLows[4u * XSTEP];
#endif
shared vec4 scales[WROWS];  // of a row's block: scales of its groups, minima of its groups
shared vec4 infos[COUNT];   // of a row of x: scale, sum of the block, sums of its halves

Sums high[4]; // by row of W, over the rows of x: the sums of a group
Sums low[4];
vec4 lane[4];
vec4 ones[4]; // the first of two lanes, sums, sums of sums
vec4 twos[4];
vec4 fours[4];

uint tileOf(uint first, uint r) { return min(first + r / 32u, p.tiles - 1u) * p.tileTexels + inTile(r & 31u); }

// Four columns of a row of x.
void takeX(uint at, uint quad, uint to) {
#ifdef EXACT
	ivec4 v = ivec4(FETCH(xs, at + quad));
	xHighs[to] = vec4(v >> 16);
	xLows[to] = vec4(v & 4095);
#else
	uvec4 v = FETCH(xs, at + quad / 2u);
#ifdef DOT4
	uvec2 w = quad % 2u == 0u ? v.xy : v.zw;
	xHighs[to] = highBytes(w);
	xLows[to] = lowBytes(w);
#else
	ivec2 w = ivec2(quad % 2u == 0u ? v.xy : v.zw);
	xHighs[to] = vec4(ivec4((w.x << 16) >> 16, w.x >> 16, (w.y << 16) >> 16, w.y >> 16));
#endif
#endif
}

// Half h of block b comes into shared memory.
void take(uint id, uint first, uint xAt, uint b, uint h) {
	for (uint i = id; i < 4u * WROWS; i += WG) {
		uint r = i % WROWS;
		uint q = i / WROWS;
		Block k = blockOf(tileOf(first, r), b);
#ifdef DOT4
		ws[q * WSTEP + r] = numbers(k, 4u * h + q);
#else
		ws[q * WSTEP + r] = codes(k, 4u * h + q);
#endif
	}
	takeX(xAt + b * XBLOCK, 4u * h + id % 4u, (id % 4u) * XSTEP + id / 4u);
}

// What belongs to block b.
void takeScales(uint id, uint first, uint xAt, uint b) {
	for (uint r = id; r < WROWS; r += WG) {
		vec2 d;
		vec2 m;
		uint at = tileOf(first, r);
		scalesOf(superOf(at, b / 8u), b, at, d, m);
		scales[r] = vec4(d, m);
	}
	if (id % 4u == 0u) infos[id / 4u] = uintBitsToFloat(FETCH(xs, xAt + b * XBLOCK + XTEXELS));
}

#define EACH(DO) DO(0) DO(1) DO(2) DO(3)

// The columns of four rows of x: over the rows.
#define COLUMNS(xs, at) mat4(xs[at], xs[at + 1u], xs[at + 2u], xs[at + 3u])
#define OVER(m, k) vec4(m[0][k], m[1][k], m[2][k], m[3][k])
#ifdef DOT4
#define FOUR(xs, at) uvec4(xs[at], xs[at + 1u], xs[at + 2u], xs[at + 3u])
#define DOTS(w, xs) ivec4(DOT(w, xs.x), DOT(w, xs.y), DOT(w, xs.z), DOT(w, xs.w))
#define MULTIPLY(j) { \
	uint w = ws[q * WSTEP + wRow + 16u * uint(j)]; \
	high[j] += DOTS(w, xHigh); \
	low[j] += DOTS(w, xLow); }
#else
#define MULTIPLY(j) { \
	vec4 w = ws[q * WSTEP + wRow + 16u * uint(j)]; \
	high[j] += w.x * OVER(xHigh, 0); high[j] += w.y * OVER(xHigh, 1); high[j] += w.z * OVER(xHigh, 2); high[j] += w.w * OVER(xHigh, 3); \
	MULTIPLY_LOW(j) }
#ifdef EXACT
#define MULTIPLY_LOW(j) low[j] += w.x * OVER(xLow, 0); low[j] += w.y * OVER(xLow, 1); low[j] += w.z * OVER(xLow, 2); low[j] += w.w * OVER(xLow, 3);
#else
#define MULTIPLY_LOW(j)
#endif
#endif

void multiply(uint wRow, uint xRow) {
	for (uint q = 0u; q < 4u; q++) {
#ifdef DOT4
		uvec4 xHigh = FOUR(xHighs, q * XSTEP + xRow);
		uvec4 xLow = FOUR(xLows, q * XSTEP + xRow);
#else
		mat4 xHigh = COLUMNS(xHighs, q * XSTEP + xRow);
#endif
#ifdef EXACT
		mat4 xLow = COLUMNS(xLows, q * XSTEP + xRow);
#endif
		EACH(MULTIPLY)
	}
}

// A column of what is known of the rows' block.
vec4 known(uint xRow, int i) { return vec4(infos[xRow][i], infos[xRow + 1u][i], infos[xRow + 2u][i], infos[xRow + 3u][i]); }

// The end of a group: see matmul.glsl.
void raise(int j, float d, float m, vec4 xScale, vec4 total) {
	PRECISE vec4 sum = lane[j];
#ifdef EXACT
	PRECISE vec4 s = high[j] * 4096.0 + low[j];
#elif defined(DOT4)
	PRECISE vec4 s = sumOf(high[j], low[j], total);
#else
	PRECISE vec4 s = high[j];
#endif
	PRECISE vec4 ds = d * xScale;
	PRECISE vec4 u = s * ds;
	sum = sum + u;
#ifdef MINIMA
	PRECISE vec4 ms = m * xScale;
	PRECISE vec4 v = total * ms;
	sum = sum + v;
#endif
	lane[j] = sum;
	high[j] = Sums(0);
	low[j] = Sums(0);
}
#define RAISE(j) { \
	vec4 s = scales[wRow + 16u * uint(j)]; \
	raise(j, second ? s.y : s.x, second ? s.w : s.z, xScale, total); }

#define BEGIN(j) high[j] = Sums(0); low[j] = Sums(0); ones[j] = vec4(0.0); twos[j] = vec4(0.0); fours[j] = vec4(0.0);
#define BEGIN_LANE(j) lane[j] = vec4(0.0);

// Lane i of the order is at its end.
#define END_LANE(j) { \
	PRECISE vec4 one = ones[j] + lane[j]; \
	PRECISE vec4 two = twos[j] + one; \
	PRECISE vec4 four = fours[j] + two; \
	if ((i & 1u) == 0u) ones[j] = lane[j]; \
	else if ((i & 2u) == 0u) twos[j] = one; \
	else if ((i & 4u) == 0u) fours[j] = two; \
	else lane[j] = four; }

#define KEEP(j) { \
	uint r = wRow + 16u * uint(j); \
	uint c = (p.tile0 + first) * 32u + r; \
	for (uint m = 0u; m < 4u; m++) { \
		if (row + xRow + m < rows && first + r / 32u < p.tiles && c < p.outRows) keep(row + xRow + m, 0u, 0u, c, lane[j][m]); \
	} }

void main() {
	uint id = gl_LocalInvocationID.x;
	uint rows = batch[p.rows];
	uint row = gl_WorkGroupID.y * COUNT;
	uint first = gl_WorkGroupID.x * 2u;
	if (row >= rows) return;
	uint xAt = p.x + min(row + id / 4u, rows - 1u) * p.xStride;
	uint wRow = id % 16u;
	uint xRow = id / 16u * 4u;
	bool some = row + xRow < rows; // of the invocation's rows of x are there
	EACH(BEGIN)
	for (uint i = 0u; i < 8u; i++) {
		EACH(BEGIN_LANE)
		// Half after half; of the lane's next block the first.
		for (uint at = 2u * ((i & 1u) << 2 | (i & 2u) | i >> 2); at < 2u * p.steps; at += at % 2u == 0u ? 1u : 15u) {
			bool second = at % 2u == 1u;
			if (!second) takeScales(id, first, xAt, at / 2u);
			take(id, first, xAt, at / 2u, at % 2u);
			sync();
			if (some) multiply(wRow, xRow);
			vec4 xScale = known(xRow, 0);
#if GROUP == 16
			vec4 total = second ? known(xRow, 3) : known(xRow, 2);
			EACH(RAISE)
#else
			vec4 total = known(xRow, 1);
			if (second) {
				second = false; // the block is one group
				EACH(RAISE)
			}
#endif
			sync();
		}
		EACH(END_LANE)
	}
	EACH(KEEP)
}
