// Softcap: out = tanh(in · inverse) · cap with the host's inverse = 1/cap; columns in x,
// rows in y, one element per invocation.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint width;
	uint src; uint srcStride;
	uint dst; uint dstStride;
	float cap; float inverse;
} p;

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
	PRECISE float t = load(p.src + row * p.srcStride + col) * p.inverse;
	PRECISE float y = TanhF(t) * p.cap;
	store(p.dst + row * p.dstStride + col, y);
}
