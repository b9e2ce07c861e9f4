// A row's way from a branch to the next product, by a workgroup, for normchain.glsl and for
// the products that go on with it (product_chain.glsl). The including kernel has the
// constants COLS, BRANCH, ADD, NEXT and WHOLE, the parameters of the steps, act, outs, and
// FIRST(i) and SECOND(i), the bits of the norms' weights. With STORE_ALL all results are
// stored, otherwise the sum and the whole numbers alone.
#include "whole.glsl"
#include "fold.glsl"

#define AT(i) ((i) + (i) / 32u)
shared float values[COLS + COLS / 32u + 1u];

// scaleOf is what RMSNorm multiplies the row in shared memory with; the row is complete
// for all invocations afterwards, and before it for none but their own columns.
float scaleOf(uint cols, float eps) {
	uint id = gl_LocalInvocationID.x;
	sync();
	PRECISE float sum = 0.0;
	PRECISE float x;
	PRECISE float square;
	for (uint i = id; i < (id < ADDERS ? cols : 0u); i += ADDERS) {
		x = values[AT(i)];
		square = x * x;
		sum = sum + square;
	}
	PRECISE float total = fold(sum) * p.inverse;
	PRECISE float guarded = total + eps;
	return Rsqrt(guarded);
}

// chain does a row of so many columns that begins at src.
void chain(uint row, uint cols, uint src) {
	uint id = gl_LocalInvocationID.x;
	PRECISE float y;
	for (uint i = id; i < cols; i += WG) values[AT(i)] = load(src + i);
	if (BRANCH != 0u) {
		float r = scaleOf(cols, p.branchEps);
		for (uint i = id; i < cols; i += WG) {
			y = values[AT(i)] * r;
			if (BRANCH == 2u) y = y * uintBitsToFloat(FIRST(i));
			values[AT(i)] = y;
#ifdef STORE_ALL
			store(p.branch + row * p.branchStride + i, y);
#endif
		}
	}
	if (ADD != 0u) {
		for (uint i = id; i < cols; i += WG) {
			y = values[AT(i)] + load(p.residual + row * p.residualStride + i);
			values[AT(i)] = y;
			store(p.sum + row * p.sumStride + i, y);
		}
	}
	if (NEXT != 0u) {
		float r = scaleOf(cols, p.eps);
		for (uint i = id; i < cols; i += WG) {
			y = values[AT(i)] * r;
			if (NEXT == 2u) y = y * uintBitsToFloat(SECOND(i));
			values[AT(i)] = y;
#ifdef STORE_ALL
			store(p.dst + row * p.dstStride + i, y);
#endif
		}
	}
	if (WHOLE != 0u) {
		sync();
		for (uint b = id; b < cols / 32u; b += WG) {
			uint bits[32];
			for (uint i = 0u; i < 32u; i++) bits[i] = floatBitsToUint(values[33u * b + i]);
			putWhole(bits, p.whole + row * p.wholeStride + b * (XTEXELS + 1u));
		}
	}
}
