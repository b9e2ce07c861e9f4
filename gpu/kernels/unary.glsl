// Unary: out = act(in), columns in x, rows in y; one element per invocation. The
// function is a constant, for where code runs masked (software renderers, diverged
// subgroups) a switch would compute all of them.

CONSTANT(0, WG, 64)
CONSTANT(1, ACT, 1)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint src; uint srcStride;
	uint dst; uint dstStride;
} p;

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	store(p.dst + row * p.dstStride + col, activate(ACT, load(p.src + row * p.srcStride + col)));
}
