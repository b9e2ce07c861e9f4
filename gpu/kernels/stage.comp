#include "common.glsl"

// Rows of activations as texels, for products with matrices of floats: the columns in
// their order, filled up with zeros to a multiple of 16. An invocation has a texel. A row
// can be several inputs side by side (experts), each of which becomes a row.
CONSTANT(0, WG, 32)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint src; uint srcStride;
	uint cols; uint parts; // columns of an input, inputs of a row
	uint texels;           // of an input
	uint dst; uint dstStride; // in texels
} p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) buffer Out { uvec4 outs[]; };

void main() {
	uint t = gl_GlobalInvocationID.x;
	uint row = gl_WorkGroupID.y / p.parts;
	if (row >= batch[p.rows] || t >= p.texels) return;
	uint col = 4u * t;
	uint src = p.src + row * p.srcStride + (gl_WorkGroupID.y % p.parts) * p.cols + col;
	uvec4 v = uvec4(0u);
	if (col < p.cols) v.x = act[src];
	if (col + 1u < p.cols) v.y = act[src + 1u];
	if (col + 2u < p.cols) v.z = act[src + 2u];
	if (col + 3u < p.cols) v.w = act[src + 3u];
	outs[p.dst + gl_WorkGroupID.y * p.dstStride + t] = v;
}
