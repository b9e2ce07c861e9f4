// GLU: out = act(gate) · (up + offset), the gate limited from above and up to ±limit
// first where limit is above 0; with ALPHA the activation is g·σ(alpha·g). Columns in x,
// rows in y, one element per invocation. With WHOLE the result is also written as whole
// numbers (whole.glsl), a block of 32 columns by one invocation; columns are whole blocks
// then.

CONSTANT(0, WG, 64)
CONSTANT(1, ACT, 1)
CONSTANT(2, ALPHA, 0)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint gate; uint gateStride;
	uint up; uint upStride;
	uint dst; uint dstStride;
	float limit; float alpha; float offset;
#ifdef WHOLE
	uint whole; uint wholeStride; // in texels
#endif
} p;
#ifdef WHOLE
STORAGE(2) buffer Out { uvec4 outs[]; };
#include "whole.glsl"
shared float values[WG + WG / 32u]; // behind every 32 one is left out
#endif

float gated(uint row, uint col) {
	PRECISE float g = load(p.gate + row * p.gateStride + col);
	PRECISE float u = load(p.up + row * p.upStride + col);
	if (p.limit > 0.0) {
		if (g > p.limit) g = p.limit;
		if (u < -p.limit) u = -p.limit;
		if (u > p.limit) u = p.limit;
	}
	PRECISE float a;
	if (ALPHA != 0u) {
		PRECISE float t = p.alpha * g;
		a = g * SigmoidF(t);
	} else {
		a = activate(ACT, g);
	}
	PRECISE float v = u + p.offset;
	PRECISE float y = a * v;
	return y;
}

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows]) return; // the same for the whole workgroup
#ifdef WHOLE
	uint id = gl_LocalInvocationID.x;
	if (col < p.width) {
		float y = gated(row, col);
		store(p.dst + row * p.dstStride + col, y);
		values[id + id / 32u] = y;
	}
	sync();
	if (id < WG / 32u && col - id + 32u * id < p.width) {
		uint bits[32];
		for (uint i = 0u; i < 32u; i++) bits[i] = floatBitsToUint(values[33u * id + i]);
		putWhole(bits, p.whole + row * p.wholeStride + ((col - id) / 32u + id) * (XTEXELS + 1u));
	}
#else
	if (col < p.width) store(p.dst + row * p.dstStride + col, gated(row, col));
#endif
}
