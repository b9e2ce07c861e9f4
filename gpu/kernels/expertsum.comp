#include "common.glsl"

// Adds the experts' outputs of a row in list order (rule 8 of gpu/DESIGN.md):
// out = Σ_k weight[k]·in[k], an invocation for each column. The same in both modes.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint topK;
	uint ids; uint idsStride;
	uint weights; uint weightsStride;
	uint src; uint srcStride;
	uint dst; uint dstStride;
	uint scaled; // 1: each expert has a scale of its own
} p;

#include "act.glsl"
STORAGE(2) readonly buffer Scales { uint scales[]; };

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	PRECISE float y = 0.0;
	PRECISE float w;
	PRECISE float t;
	for (uint k = 0u; k < p.topK; k++) {
		w = load(p.weights + row * p.weightsStride + k);
		if (p.scaled != 0u) w = w * uintBitsToFloat(scales[act[p.ids + row * p.idsStride + k]]);
		t = w * load(p.src + row * p.srcStride + k * p.width + col);
		y = y + t;
	}
	store(p.dst + row * p.dstStride + col, y);
}
