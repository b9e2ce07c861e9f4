// The product of a packed matrix of floats with many rows of activations, by tiles, in the
// 16 lanes of gpu/DESIGN.md, rule 1: out[row] = W·x[row], in both modes.
//
// A workgroup makes 32 rows of W (a tile) times WG/8 rows of x. It goes through the columns
// by two runs of 16, which come into shared memory; each weight is widened once. A quarter
// of the invocations has four of the lanes: an invocation has them of four rows of W and
// four rows of x, and at the end the quarters' lanes are folded through shared memory.
//
// Vectors are over four neighbouring lanes.
#include "widen.glsl"

#define COUNT (WG / 8u)    // rows of x
#define XSTEP (COUNT + 2u) // from quad to quad: quads of neighbours are in different banks
#define RUNS 2u
shared vec4 ws[4u * RUNS * 32u];   // [run][quad of lanes][row of W]
shared vec4 xRuns[4u * RUNS * XSTEP]; // [run][quad of lanes][row of x]
shared vec4 quarters[WG];

vec4 lanes[16]; // [row of W][row of x]

#define EACH(DO) DO(0) DO(1) DO(2) DO(3)

// Four lanes of a run of a row of W.
vec4 widen(uint tile, uint step, uint quad) {
#ifdef F32
	return uintBitsToFloat(FETCH(weights, tile + (4u * step + quad) * STRIP));
#else
	uvec4 v = FETCH(weights, tile + (2u * step + quad / 2u) * STRIP);
	return widened(quad % 2u == 0u ? v.xy : v.zw);
#endif
}

// So many runs from a step on come into shared memory.
void take(uint id, uint tile, uint row, uint lastRow, uint step, uint runs) {
	for (uint i = id; i < 128u * runs; i += WG) {
		uint r = i % 32u;
		ws[i] = widen(tile + inTile(r), step + i / 128u, i / 32u % 4u);
	}
	for (uint i = id; i < 4u * runs * COUNT; i += WG) {
		uint quad = i % 4u;
		uint run = i / 4u % runs;
		uint r = i / (4u * runs);
		uint at = p.x + min(row + r, lastRow) * p.xStride + 4u * (step + run) + quad;
		xRuns[(4u * run + quad) * XSTEP + r] = uintBitsToFloat(FETCH(xs, at));
	}
}

#define BEGIN(j) lanes[4 * j] = vec4(0.0); lanes[4 * j + 1] = vec4(0.0); lanes[4 * j + 2] = vec4(0.0); lanes[4 * j + 3] = vec4(0.0);

void add(int i, vec4 w, vec4 x) {
	PRECISE vec4 u = w * x;
	PRECISE vec4 v = lanes[i] + u;
	lanes[i] = v;
}
#define MULTIPLY(j) { \
	vec4 w = ws[32u * quad + wRow + 8u * uint(j)]; \
	add(4 * j, w, x0); add(4 * j + 1, w, x1); add(4 * j + 2, w, x2); add(4 * j + 3, w, x3); }

void multiply(uint quad, uint wRow, uint xRow) {
	uint at = quad * XSTEP + xRow;
	vec4 x0 = xRuns[at];
	vec4 x1 = xRuns[at + 1u];
	vec4 x2 = xRuns[at + 2u];
	vec4 x3 = xRuns[at + 3u];
	EACH(MULTIPLY)
}

// The fold over the quarters of the workgroup, for the invocation that has a place in the
// first of them.
float folded(uint place) {
	PRECISE vec4 a = quarters[place] + quarters[place + WG / 2u];
	PRECISE vec4 b = quarters[place + WG / 4u] + quarters[place + WG / 4u * 3u];
	PRECISE vec4 c = a + b;
	PRECISE float x = c.x + c.z;
	PRECISE float y = c.y + c.w;
	PRECISE float z = x + y;
	return z;
}
#define KEEP(j) KEEP_ROW(j, 0) KEEP_ROW(j, 1) KEEP_ROW(j, 2) KEEP_ROW(j, 3)
#define KEEP_ROW(j, m) { \
	quarters[id] = lanes[4 * j + m]; \
	sync(); \
	uint c = (p.tile0 + first) * 32u + wRow + 8u * uint(j); \
	if (quad == uint(m) && row + xRow + uint(m) < rows && c < p.outRows) keep(row + xRow + uint(m), 0u, 0u, c, folded(place)); \
	sync(); }

void main() {
	uint id = gl_LocalInvocationID.x;
	uint rows = batch[p.rows];
	uint row = gl_WorkGroupID.y * COUNT;
	uint first = gl_WorkGroupID.x;
	if (row >= rows) return;
	uint quad = id / (WG / 4u); // which lanes
	uint place = id % (WG / 4u);
	uint wRow = place % 8u;
	uint xRow = place / 8u * 4u;
	bool some = row + xRow < rows; // of the invocation's rows of x are there
	EACH(BEGIN)
	for (uint step = 0u; step < p.steps; step += RUNS) {
		uint runs = min(RUNS, p.steps - step);
		take(id, first * p.tileTexels, row, rows - 1u, step, runs);
		sync();
		for (uint run = 0u; run < (some ? runs : 0u); run++) multiply(4u * run + quad, wRow, xRow);
		sync();
	}
	EACH(KEEP)
}
