// The product of a packed matrix of whole numbers with rows of activations:
// out[row] = W·x[row], W: [rows of W, columns], x: [rows, columns].
//
// An invocation has the same row of TILES tiles of W and XROWS rows of x; the 32 rows of
// a tile lie beside each other, so that neighbours read neighbouring texels, and all
// invocations of a workgroup read the same activations. W is unpacked once for XROWS
// rows. A workgroup of more than 32 invocations divides the blocks among its parts, in
// the way in which the lanes of gpu/DESIGN.md, rule 2, are folded, so that the bits are
// the same.
//
// Activations come rounded to whole numbers (quantize.glsl) of which every sum is exact
// in float32: 23 bits in two parts in exact mode, 13 in fast mode. So sums have no order,
// fused multiply-add changes nothing, and a row gets the same bits whatever TILES, XROWS
// and WG are, in fast mode too.
//
// The eight lanes are slots: a block adds to slot 0 and then turns the slots round, so
// that no array is indexed by a variable. The fold adds what is four slots apart, then
// two, then one, for which it is the same where the turning ended.
//
// Vectors are over the rows of x; what XROWS = 1 does not need of them falls away when
// the kernel is compiled.
//
// With DOT4 the sums are made of dot products (dot4.glsl).
#include "product_place.glsl"
#ifdef DOT4
#include "dot4.glsl"
#endif

#define PARTS (WG / 32u)
#include "product_chain.glsl"
#define XBLOCK (XTEXELS + 1u)

#ifdef DOT4
#define Sums ivec4
uvec4 xHigh;    // a quad of each row of x
uvec4 xLow;
#else
#define Sums vec4
mat4 xHigh;
mat4 xLow;
#endif
Sums high[4]; // by tile: the sums of a group
Sums low[4];
vec4 lanes[32]; // [slot][tile]
vec4 info[4];   // of each row of x: scale, sum of the block, sums of its halves
vec4 xScale;
Super supers[4];
Block blocks[4];
vec2 scales[4];
vec2 minima[4];
uint tileAt[4];
uint xAt[4];
shared float joined[WG];

#define ROWS(DO, i) DO(0, i) if (XROWS > 1u) { DO(1, i) DO(2, i) DO(3, i) }
#define EACH(DO, i) DO(0, i) if (TILES > 1u) { DO(1, i) } if (TILES > 2u) { DO(2, i) DO(3, i) }

// Quad i of the block: those of the rows of x, and their products with the tiles.
#ifdef EXACT
#define TAKE(m, i) { \
	ivec4 v = ivec4(FETCH(xs, xAt[m] + xBlock + i)); \
	xHigh[m] = vec4(v >> 16); \
	xLow[m] = vec4(v & 4095); }
#elif defined(DOT4)
#define TAKE(m, i) { \
	uvec4 v = FETCH(xs, xAt[m] + xBlock + i / 2u); \
	uvec2 w = i % 2u == 0u ? v.xy : v.zw; \
	xHigh[m] = highBytes(w); \
	xLow[m] = lowBytes(w); }
#else
#define TAKE(m, i) { \
	uvec4 v = FETCH(xs, xAt[m] + xBlock + i / 2u); \
	ivec2 w = ivec2(i % 2u == 0u ? v.xy : v.zw); \
	xHigh[m] = vec4(ivec4((w.x << 16) >> 16, w.x >> 16, (w.y << 16) >> 16, w.y >> 16)); }
#endif

#ifdef DOT4
#define DOTS(m, t) high[t][m] += DOT(q, xHigh[m]); low[t][m] += DOT(q, xLow[m]);
#define MULTIPLY(t, i) { uint q = numbers(blocks[t], i); ROWS(DOTS, t) }
#else
void multiply(int t, vec4 q) {
	high[t] += q * xHigh;
#ifdef EXACT
	low[t] += q * xLow;
#endif
}
#define MULTIPLY(t, i) multiply(t, codes(blocks[t], i));
#endif
#define QUAD(i) ROWS(TAKE, i) EACH(MULTIPLY, i)

// The end of a group: the sums, rounded once, times the scales of weights and activations
// go to the lane. total has the sums of x.
void raise(int t, float d, float m, vec4 total) {
	PRECISE vec4 lane = lanes[t];
#ifdef EXACT
	PRECISE vec4 s = high[t] * 4096.0 + low[t];
#elif defined(DOT4)
	PRECISE vec4 s = sumOf(high[t], low[t], total);
#else
	PRECISE vec4 s = high[t];
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
	high[t] = Sums(0);
	low[t] = Sums(0);
}

// A column of what is known of the rows' block.
vec4 known(int i) { return XROWS > 1u ? vec4(info[0][i], info[1][i], info[2][i], info[3][i]) : vec4(info[0][i], 0.0, 0.0, 0.0); }
#define RAISE_FIRST(t, i) raise(t, scales[t].x, minima[t].x, total);
#define RAISE_SECOND(t, i) raise(t, scales[t].y, minima[t].y, total);

#define BEGIN(t, i) high[t] = Sums(0); low[t] = Sums(0); \
	lanes[t] = vec4(0.0); lanes[4 + t] = vec4(0.0); lanes[8 + t] = vec4(0.0); lanes[12 + t] = vec4(0.0); \
	lanes[16 + t] = vec4(0.0); lanes[20 + t] = vec4(0.0); lanes[24 + t] = vec4(0.0); lanes[28 + t] = vec4(0.0);
#define SUPER(t, s) supers[t] = superOf(tileAt[t], s);
#define BLOCK(t, b) blocks[t] = blockOf(tileAt[t], b); scalesOf(supers[t], b, tileAt[t], scales[t], minima[t]);
#define INFO(m, i) info[m] = uintBitsToFloat(FETCH(xs, xAt[m] + xBlock + XTEXELS));

// Slot 0 becomes the last of SLOTS.
#define TURN(t, i) { \
	vec4 v = lanes[t]; \
	if (PARTS == 1u) { \
		lanes[t] = lanes[4 + t]; lanes[4 + t] = lanes[8 + t]; lanes[8 + t] = lanes[12 + t]; lanes[12 + t] = lanes[16 + t]; \
		lanes[16 + t] = lanes[20 + t]; lanes[20 + t] = lanes[24 + t]; lanes[24 + t] = lanes[28 + t]; lanes[28 + t] = v; \
	} else if (PARTS == 2u) { \
		lanes[t] = lanes[4 + t]; lanes[4 + t] = lanes[8 + t]; lanes[8 + t] = lanes[12 + t]; lanes[12 + t] = v; \
	} else if (PARTS == 4u) { \
		lanes[t] = lanes[4 + t]; lanes[4 + t] = v; \
	} }

// The fold of the slots of this invocation.
vec4 folded(int t) {
	if (PARTS == 8u) return lanes[t];
	PRECISE vec4 a = lanes[t];
	PRECISE vec4 b = lanes[4 + t];
	if (PARTS == 1u) {
		PRECISE vec4 c0 = lanes[t] + lanes[16 + t];
		PRECISE vec4 c1 = lanes[4 + t] + lanes[20 + t];
		PRECISE vec4 c2 = lanes[8 + t] + lanes[24 + t];
		PRECISE vec4 c3 = lanes[12 + t] + lanes[28 + t];
		a = c0 + c2;
		b = c1 + c3;
	} else if (PARTS == 2u) {
		a = lanes[t] + lanes[8 + t];
		b = lanes[4 + t] + lanes[12 + t];
	}
	PRECISE vec4 y = a + b;
	return y;
}

// The fold over the parts of a workgroup.
float join(float x, uint id) {
	PRECISE float y = x;
	for (uint n = PARTS / 2u; n > 0u; n /= 2u) {
		joined[id] = y;
		sync();
		PRECISE float z = joined[(id + 32u * n) % WG];
		y = y + z;
		sync();
	}
	return y;
}

#define PLACE(t, i) tileAt[t] = min(first + uint(t), p.tiles - 1u) * p.tileTexels + inTile(lane);
#define PLACE_ROW(m, i) xAt[m] = p.x + min(xRow + uint(m), lastRow) * p.xStride;
// A loop only for the size of the code.
#define FINISH(t, i) { \
	vec4 y = folded(t); \
	uint c = (tile + uint(t)) * 32u + lane; \
	for (uint m = 0u; m < XROWS; m++) { \
		float v = join(y[m], id); \
		if (id < 32u && row + m < rows && first + uint(t) < p.tiles && c < p.outRows) keep(row + m, k, expert, c, v); \
	} }

void main() {
	PLACE_OF_WORK
	EACH(PLACE, 0)
	ROWS(PLACE_ROW, 0)
	EACH(BEGIN, 0)
	for (uint s = 0u; 8u * s < p.steps; s++) {
		EACH(SUPER, s)
		for (uint b = 8u * s + id / 32u; b < min(8u * s + 8u, p.steps); b += PARTS) {
			uint xBlock = b * XBLOCK;
			EACH(BLOCK, b)
			ROWS(INFO, 0)
			xScale = known(0);
#if GROUP == 16
			vec4 total = known(2);
			QUAD(0u) QUAD(1u) QUAD(2u) QUAD(3u)
			EACH(RAISE_FIRST, 0)
			total = known(3);
			QUAD(4u) QUAD(5u) QUAD(6u) QUAD(7u)
			EACH(RAISE_SECOND, 0)
#else
			vec4 total = known(1);
			QUAD(0u) QUAD(1u) QUAD(2u) QUAD(3u) QUAD(4u) QUAD(5u) QUAD(6u) QUAD(7u)
			EACH(RAISE_FIRST, 0)
#endif
			EACH(TURN, 0)
		}
	}
	EACH(FINISH, 0)
	goOn(row, rows);
}
