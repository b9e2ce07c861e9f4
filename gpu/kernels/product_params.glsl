// What the products with packed matrices have in common: their bindings, parameters and
// the end of a row's sum.
CONSTANT(0, WG, 32)
CONSTANT(1, TILES, 1)   // tiles that an invocation takes a row of: 1, 2, 4 or (texels) 8
CONSTANT(2, XROWS, 1)   // rows of activations that it multiplies with: 1 or 4
CONSTANT(3, EXPERTS, 0) // 1: the matrix is one of a stack, chosen for each row
CONSTANT(4, BIAS, 0)    // 1: a bias is added
CONSTANT(5, ADAPTER, 0) // 1: the product is scaled and added to what is there
CONSTANT(6, CHAIN, 0)   // 1: the last workgroup goes on with the rows, product_chain.glsl
CONSTANT(7, COLS, 32)   // of CHAIN: of a row, at least
CONSTANT(8, BRANCH, 0)  // of CHAIN: as in normchain.glsl
CONSTANT(9, NEXT, 0)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows;                 // word of the batch that has the number of rows
	uint tiles; uint tile0;    // of the window: how many, and the number of the first
	uint matrixTiles;          // of one matrix
	uint outRows;              // of one matrix
	uint tileTexels;           // from tile to tile
	uint plane1; uint plane2; uint plane3; // first texels of the planes
	uint steps;                // blocks of 32 columns, or runs of 16 columns of floats
	uint x; uint xStride;      // first texel of row 0, texels from row to row
	uint dst; uint dstStride;
	uint ids; uint idsStride; uint topK; uint own; // own: each expert has an input
	uint scales; float factor; // of ADAPTER: words of the rows' strengths
	uint tokens;               // of ADAPTER: words of the rows' tokens, 0 for all rows
	uint residual; uint residualStride; // of CHAIN
	uint sum; uint sumStride;
	uint whole; uint wholeStride;       // in texels
	float branchEps; float eps; float inverse;
} p;

#ifndef TILED
#define ACT_ACCESS coherent
#endif
#include "act.glsl"
FETCHED(2, Weights, weights)
FETCHED(3, Inputs, xs)
STORAGE(4) readonly buffer Vec { uint vec[]; }; // the bias, then the weights of CHAIN's norms
STORAGE(5) readonly buffer Ids { uint chosen[]; };
STORAGE(6) buffer Out { uvec4 outs[]; };           // of CHAIN: whole numbers
STORAGE(7) coherent buffer Counts { uint counts[]; }; // of CHAIN: one for each place in grid y

// keep stores a product as column c of a row, c counted through the experts, unless the
// row takes no part.
void keep(uint row, uint k, uint expert, uint c, float product) {
	PRECISE float y = product;
	uint at = p.dst + row * p.dstStride + k * p.outRows + c;
	if (BIAS != 0u) {
		PRECISE float b = uintBitsToFloat(vec[expert * p.outRows + c]);
		y = y + b;
	}
	if (ADAPTER != 0u) {
		PRECISE float s = uintBitsToFloat(batch[p.scales + row]) * p.factor;
		bool some = s != 0.0 && (p.tokens == 0u || int(batch[p.tokens + row]) >= 0);
		PRECISE float u = y * s;
		PRECISE float v = uintBitsToFloat(act[at]) + u;
		if (some) act[at] = floatBitsToUint(v);
	} else {
		act[at] = floatBitsToUint(y);
	}
}
