// Look-up of rows of a packed matrix: out[row] = W[index[row]]·scale, widened to the bits
// of tensor.Dequantize. An invocation has four neighbouring columns of a row. The kernel
// runs once for each window of the matrix and does what lies in it. A row without an
// index has that of row 0, or is given by the batch.
CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows;              // word of the batch that has the number of rows
	uint index;             // words of the rows' indices
	uint tiles; uint tile0; // of the window: how many, and the number of the first
	uint tileTexels;        // from tile to tile
	uint plane1; uint plane2; uint plane3; // first texels of the planes
	uint width;
	uint dst; uint dstStride;
	uint given;             // 1: rows without an index are rows of embeds
	float scale;
} p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) buffer Act { uint act[]; };
FETCHED(2, Weights, weights)
STORAGE(3) readonly buffer Embeds { uint embeds[]; };

// Four columns of the row that begins at a texel of the window.
vec4 columns(uint tile, uint quad);

void main() {
	uint quad = gl_GlobalInvocationID.x;
	uint row = gl_WorkGroupID.y;
	if (row >= batch[p.rows] || 4u * quad >= p.width) return;
	uint at = p.dst + row * p.dstStride + 4u * quad;
	uint n = min(p.width - 4u * quad, 4u);
	int index = int(batch[p.index + row]);
	if (index < 0 && p.given != 0u) {
		if (p.tile0 == 0u) {
			for (uint i = 0u; i < n; i++) act[at + i] = embeds[row * p.width + 4u * quad + i];
		}
		return;
	}
	uint of = uint(max(index, 0));
	uint tile = of / 32u - p.tile0; // what lies before the window wraps round
	if (tile >= p.tiles) return;
	PRECISE vec4 v = columns(tile * p.tileTexels + inTile(of % 32u), quad);
	PRECISE vec4 y = p.scale == 1.0 ? v : v * p.scale;
	for (uint i = 0u; i < n; i++) act[at + i] = floatBitsToUint(y[i]);
}
