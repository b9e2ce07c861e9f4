// GLU: out = act(gate) · (up + offset), the gate limited from above and up to ±limit
// first where limit is above 0; with ALPHA the activation is g·σ(alpha·g). Columns in x,
// rows in y, one element per invocation.

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
} p;

void main() {
	uint row = gl_WorkGroupID.y;
	uint col = gl_GlobalInvocationID.x;
	if (row >= batch[p.rows] || col >= p.width) return;
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
	store(p.dst + row * p.dstStride + col, y);
}
