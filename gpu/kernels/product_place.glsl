// Where an invocation of a product works: the beginning of its main. It leaves when
// there is nothing to do here for the whole workgroup.
#define PLACE_OF_WORK \
	uint id = gl_LocalInvocationID.x; \
	uint lane = id & 31u; \
	uint rows = batch[p.rows]; \
	uint row = gl_WorkGroupID.y * XROWS; \
	uint tile = gl_WorkGroupID.x * TILES;  \
	uint k = 0u; \
	uint expert = 0u; \
	uint first = tile;  \
	uint xRow = row; \
	uint lastRow = rows - 1u; \
	if (EXPERTS != 0u) { \
	row = gl_WorkGroupID.y / p.topK; \
	k = gl_WorkGroupID.y % p.topK; \
	if (row >= rows) return; \
	expert = chosen[p.ids + row * p.idsStride + k]; \
	first = expert * p.matrixTiles + tile - p.tile0; \
	if (first >= p.tiles && first + TILES - 1u >= p.tiles) return; \
	xRow = p.own != 0u ? gl_WorkGroupID.y : row; \
	lastRow = xRow; \
	} else { \
	tile += p.tile0; \
	} \
	if (row >= rows) return;
