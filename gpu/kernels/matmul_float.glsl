// The product of a packed matrix of floats with rows of activations, in the 16 lanes of
// gpu/DESIGN.md, rule 1: out[row] = W·x[row], in both modes. The division of the work is
// that of matmul.glsl, but that each invocation has all of its row's columns.
//
// Vectors are over four neighbouring lanes.
#include "product_place.glsl"
#include "widen.glsl"

vec4 lanes[64]; // [tile][row of x][lanes 0…3, 4…7, …]
vec4 w[4];      // of a tile: columns of a run
uint tileAt[4];
uint xAt[4];

#define ROWS(DO, t) DO(t, 0) if (XROWS > 1u) { DO(t, 1) DO(t, 2) DO(t, 3) }
#define EACH(DO, i) DO(0, i) if (TILES > 1u) { DO(1, i) } if (TILES > 2u) { DO(2, i) DO(3, i) }

void widen(int t, uint step) {
	uint at = tileAt[t];
#ifdef F32
	at += 4u * STRIP * step;
	w[0] = uintBitsToFloat(FETCH(weights, at));
	w[1] = uintBitsToFloat(FETCH(weights, at + STRIP));
	w[2] = uintBitsToFloat(FETCH(weights, at + 2u * STRIP));
	w[3] = uintBitsToFloat(FETCH(weights, at + 3u * STRIP));
#else
	at += 2u * STRIP * step;
	uvec4 a = FETCH(weights, at);
	uvec4 b = FETCH(weights, at + STRIP);
	w[0] = widened(a.xy);
	w[1] = widened(a.zw);
	w[2] = widened(b.xy);
	w[3] = widened(b.zw);
#endif
}

void multiply(int i, uint at) {
	for (int k = 0; k < 4; k++) {
		PRECISE vec4 u = w[k] * uintBitsToFloat(FETCH(xs, at + uint(k)));
		PRECISE vec4 v = lanes[i + k] + u;
		lanes[i + k] = v;
	}
}
#define MULTIPLY(t, m) multiply(16 * t + 4 * m, xAt[m] + 4u * step);
#define TILE(t, i) { widen(t, step); ROWS(MULTIPLY, t) }

#define BEGIN(t, m) lanes[16 * t + 4 * m] = vec4(0.0); lanes[16 * t + 4 * m + 1] = vec4(0.0); \
	lanes[16 * t + 4 * m + 2] = vec4(0.0); lanes[16 * t + 4 * m + 3] = vec4(0.0);
#define BEGIN_TILE(t, i) ROWS(BEGIN, t) tileAt[t] = min(first + uint(t), p.tiles - 1u) * p.tileTexels + inTile(lane);
#define PLACE_ROW(t, m) xAt[m] = p.x + min(xRow + uint(m), lastRow) * p.xStride;

float folded(int i) {
	PRECISE vec4 a = lanes[i] + lanes[i + 2];
	PRECISE vec4 b = lanes[i + 1] + lanes[i + 3];
	PRECISE vec4 c = a + b;
	PRECISE float x = c.x + c.z;
	PRECISE float y = c.y + c.w;
	PRECISE float z = x + y;
	return z;
}
#define KEEP(t, m) { \
	uint c = (tile + uint(t)) * 32u + lane; \
	if (row + uint(m) < rows && first + uint(t) < p.tiles && c < p.outRows) keep(row + uint(m), k, expert, c, folded(16 * t + 4 * m)); }
#define KEEP_TILE(t, i) ROWS(KEEP, t)

void main() {
	PLACE_OF_WORK
	ROWS(PLACE_ROW, 0)
	EACH(BEGIN_TILE, 0)
	for (uint step = 0u; step < p.steps; step++) {
		EACH(TILE, 0)
	}
	EACH(KEEP_TILE, 0)
}
