// The product of matmul.glsl for software renderers, which run eight invocations as one
// vector on a processor: the same sums of whole numbers, in integers.
//
// A texel fetch is a call of some fifty instructions, whether the invocations fetch the
// same texel or eight, so activations cost as much as weights: up to 8 tiles share them.
// All that a block needs of them is kept in variables, which is the processor's stack, and
// the tiles take their turns, each sum in a register. What is carried from round to round
// of a loop is masked twice each time: fast mode has one sum for each tile and row, and
// adds its blocks in ascending order; exact mode turns its eight lanes round as matmul.glsl
// does. LLVM multiplies integers that it knows to have 16 bits in one instruction, and the
// numbers here are of that kind: codes have 9 bits, activations 13.
#include "product_place.glsl"
#include "product_chain.glsl"
#define XBLOCK (XTEXELS + 1u)

ivec4 xHigh[32]; // by row of x and quad of the block
ivec4 xLow[32];
vec4 info[4];    // of each row of x: scale, sum of the block, sums of its halves
vec4 xScale;
ivec4 xTotal[4]; // sums of the rows: high and low of the first group, of the second
uint xAt[4];
uint tileAt[8];
Super supers[8];
vec4 lanes[64];  // [slot][tile]
ivec4 high;      // the sums of a group, by row of x
ivec4 low;

#define ROWS(DO, i) DO(0, i) if (XROWS > 1u) { DO(1, i) DO(2, i) DO(3, i) }
#define EACH(DO, i) DO(0, i) if (TILES > 1u) { DO(1, i) } if (TILES > 2u) { DO(2, i) DO(3, i) } \
	if (TILES > 4u) { DO(4, i) DO(5, i) DO(6, i) DO(7, i) }
#define QUADS(DO, m) DO(m, 0) DO(m, 1) DO(m, 2) DO(m, 3) DO(m, 4) DO(m, 5) DO(m, 6) DO(m, 7)

#ifdef EXACT
#define TAKE(m, i) { \
	ivec4 v = ivec4(FETCH(xs, xAt[m] + xBlock + uint(i))); \
	xHigh[8 * m + i] = v >> 16; \
	xLow[8 * m + i] = v & 4095; }
#define TAKE_ROW(m, i) QUADS(TAKE, m) TOTAL(m)
#else
#define TAKE(m, i) { \
	ivec4 v = ivec4(FETCH(xs, xAt[m] + xBlock + uint(i))); \
	xHigh[8 * m + 2 * i] = ivec4((v.x << 16) >> 16, v.x >> 16, (v.y << 16) >> 16, v.y >> 16); \
	xHigh[8 * m + 2 * i + 1] = ivec4((v.z << 16) >> 16, v.z >> 16, (v.w << 16) >> 16, v.w >> 16); }
#define TAKE_ROW(m, i) TAKE(m, 0) TAKE(m, 1) TAKE(m, 2) TAKE(m, 3) TOTAL(m)
#endif
#define INFO(m, i) info[m] = uintBitsToFloat(FETCH(xs, xAt[m] + xBlock + XTEXELS));

// The sums of a row of x, for numbers that are more than their codes. Rounded ones of
// exact mode would not do.
int across(ivec4 v) { return v.x + v.y + v.z + v.w; }
#if LESS == 0
#define TOTAL(m)
#else
#define TOTAL(m) { \
	ivec4 a = xHigh[8 * m] + xHigh[8 * m + 1] + xHigh[8 * m + 2] + xHigh[8 * m + 3]; \
	ivec4 b = xHigh[8 * m + 4] + xHigh[8 * m + 5] + xHigh[8 * m + 6] + xHigh[8 * m + 7]; \
	xTotal[0][m] = LESS * across(a); \
	xTotal[2][m] = LESS * across(b); \
	TOTAL_LOW(m) }
#endif
#ifdef EXACT
#define TOTAL_LOW(m) \
	a = xLow[8 * m] + xLow[8 * m + 1] + xLow[8 * m + 2] + xLow[8 * m + 3]; \
	b = xLow[8 * m + 4] + xLow[8 * m + 5] + xLow[8 * m + 6] + xLow[8 * m + 7]; \
	xTotal[1][m] = LESS * across(a); \
	xTotal[3][m] = LESS * across(b);
#else
#define TOTAL_LOW(m)
#endif

#define DOT(a, b) (a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w)
#ifdef EXACT
#define MULTIPLY(m, i) high[m] += DOT(q, xHigh[8 * m + i]); low[m] += DOT(q, xLow[8 * m + i]);
#else
#define MULTIPLY(m, i) high[m] += DOT(q, xHigh[8 * m + i]);
#endif
#define QUAD(i) { ivec4 q = numbers(k, uint(i)); ROWS(MULTIPLY, i) }

// A column of what is known of the rows' block.
vec4 known(int i) { return XROWS > 1u ? vec4(info[0][i], info[1][i], info[2][i], info[3][i]) : vec4(info[0][i], 0.0, 0.0, 0.0); }

// The end of a group: the sums, rounded once, times the scales of weights and activations
// go to the lane. total has the sums of x, less what they count for the numbers.
void raise(int t, float d, float m, vec4 total, ivec4 less, ivec4 lessLow) {
	PRECISE vec4 lane = lanes[t];
#ifdef EXACT
	PRECISE vec4 s = vec4(high - less) * 4096.0 + vec4(low - lessLow);
#else
	PRECISE vec4 s = vec4(high - less);
#endif
	PRECISE vec4 ds = d * xScale;
	PRECISE vec4 u = s * ds;
	lane = lane + u;
#ifdef MINIMA
	PRECISE vec4 ms = m * xScale;
	PRECISE vec4 v = total * ms;
	lane = lane + v;
#endif
	lanes[t] = lane;
}
#if LESS == 0
#define LESS_FIRST ivec4(0), ivec4(0)
#define LESS_SECOND ivec4(0), ivec4(0)
#define LESS_BOTH ivec4(0), ivec4(0)
#else
#define LESS_FIRST xTotal[0], xTotal[1]
#define LESS_SECOND xTotal[2], xTotal[3]
#define LESS_BOTH xTotal[0] + xTotal[2], xTotal[1] + xTotal[3]
#endif

#define SUPER(t, s) supers[t] = superOf(tileAt[t], s);
#if GROUP == 16
#define TILE(t, b) { \
	vec2 d; \
	vec2 m; \
	Block k = blockOf(tileAt[t], b); \
	scalesOf(supers[t], b, tileAt[t], d, m); \
	high = ivec4(0); \
	low = ivec4(0); \
	QUAD(0) QUAD(1) QUAD(2) QUAD(3) \
	raise(t, d.x, m.x, known(2), LESS_FIRST); \
	high = ivec4(0); \
	low = ivec4(0); \
	QUAD(4) QUAD(5) QUAD(6) QUAD(7) \
	raise(t, d.y, m.y, known(3), LESS_SECOND); }
#else
#define TILE(t, b) { \
	vec2 d; \
	vec2 m; \
	Block k = blockOf(tileAt[t], b); \
	scalesOf(supers[t], b, tileAt[t], d, m); \
	high = ivec4(0); \
	low = ivec4(0); \
	QUAD(0) QUAD(1) QUAD(2) QUAD(3) QUAD(4) QUAD(5) QUAD(6) QUAD(7) \
	raise(t, d.x, m.x, known(1), LESS_BOTH); }
#endif

#define PLACE(t, i) tileAt[t] = min(first + uint(t), p.tiles - 1u) * p.tileTexels + inTile(lane);
#define PLACE_ROW(m, i) xAt[m] = p.x + min(xRow + uint(m), lastRow) * p.xStride;
#ifdef EXACT
#define BEGIN(t, i) lanes[t] = vec4(0.0); lanes[8 + t] = vec4(0.0); lanes[16 + t] = vec4(0.0); lanes[24 + t] = vec4(0.0); \
	lanes[32 + t] = vec4(0.0); lanes[40 + t] = vec4(0.0); lanes[48 + t] = vec4(0.0); lanes[56 + t] = vec4(0.0);
// Slot 0 becomes the last.
#define TURN(t, i) { \
	vec4 v = lanes[t]; \
	lanes[t] = lanes[8 + t]; lanes[8 + t] = lanes[16 + t]; lanes[16 + t] = lanes[24 + t]; lanes[24 + t] = lanes[32 + t]; \
	lanes[32 + t] = lanes[40 + t]; lanes[40 + t] = lanes[48 + t]; lanes[48 + t] = lanes[56 + t]; lanes[56 + t] = v; }
vec4 folded(int t) {
	PRECISE vec4 c0 = lanes[t] + lanes[32 + t];
	PRECISE vec4 c1 = lanes[8 + t] + lanes[40 + t];
	PRECISE vec4 c2 = lanes[16 + t] + lanes[48 + t];
	PRECISE vec4 c3 = lanes[24 + t] + lanes[56 + t];
	PRECISE vec4 a = c0 + c2;
	PRECISE vec4 b = c1 + c3;
	PRECISE vec4 y = a + b;
	return y;
}
#else
#define BEGIN(t, i) lanes[t] = vec4(0.0);
#define TURN(t, i)
vec4 folded(int t) { return lanes[t]; }
#endif
// A loop only for the size of the code.
#define FINISH(t, i) { \
	vec4 y = folded(t); \
	uint c = (tile + uint(t)) * 32u + lane; \
	for (uint m = 0u; m < XROWS; m++) { \
		if (row + m < rows && first + uint(t) < p.tiles && c < p.outRows) keep(row + m, k, expert, c, y[m]); \
	} }

void main() {
	PLACE_OF_WORK
	EACH(PLACE, 0)
	ROWS(PLACE_ROW, 0)
	EACH(BEGIN, 0)
	for (uint s = 0u; 8u * s < p.steps; s++) {
		EACH(SUPER, s)
		for (uint b = 8u * s; b < min(8u * s + 8u, p.steps); b++) {
			uint xBlock = b * XBLOCK;
			ROWS(TAKE_ROW, 0)
			ROWS(INFO, 0)
			xScale = known(0);
			EACH(TILE, b)
			EACH(TURN, 0)
		}
	}
	EACH(FINISH, 0)
	goOn(row, rows);
}
