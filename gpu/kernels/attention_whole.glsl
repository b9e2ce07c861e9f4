// The rows that attention made once more as whole numbers (whole.glsl), for the product
// behind it. Heads are whole blocks of 32 columns then, so that a workgroup has every
// block that it has a column of. The including kernel has declared outs.
#ifndef FAST
#define EXACT
#endif
#include "whole.glsl"

// putWholes reads what emit of the whole workgroup has written, an invocation for each
// block.
void putWholes() {
	if (WHOLE == 0u) return;
	memoryBarrierBuffer();
	barrier();
	uint blocks = VALUE_DIM / 32u; // of a head
	for (uint n = gl_LocalInvocationID.x; n < p.queries * blocks; n += WG) {
		uint i = n / blocks;
		uint b = n % blocks;
		if (!there(i)) continue;
		uint src = dstOf(i) + 32u * b;
		uint bits[32];
		for (uint k = 0u; k < 32u; k++) bits[k] = act[src + k];
		putWhole(bits, p.whole + rowOf(i) * p.wholeStride + (headOf(i) * blocks + b) * (XTEXELS + 1u));
	}
}
