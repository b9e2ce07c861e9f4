// Rows of activations as whole numbers, for products with packed matrices of whole
// numbers (matmul.glsl): x[i] is about scale·X[i], the scale a power of two for each
// block of 32 columns. This is RoundBlock of gpu/ops/whole.go; fast mode keeps 13 bits,
// so that sums of products with bytes are exact in float32.
//
// A block becomes XTEXELS texels of numbers, 32-bit words in exact mode and halves of
// words in fast mode, and a texel of floats: the scale, the sum of the numbers, and the
// sums of their halves. Columns beyond the last count as zeros.
//
// An invocation has a block. A row can be several inputs side by side (experts), each of
// which becomes a row.
CONSTANT(0, WG, 32)
LOCAL_SIZE

PARAMS uniform Params {
	uint rows; // word of the batch that has the number of rows
	uint src; uint srcStride;
	uint cols; uint parts; // columns of an input, inputs of a row
	uint blocks;           // of an input
	uint dst; uint dstStride; // in texels
} p;
STORAGE(0) readonly buffer Batch { uint batch[]; };
STORAGE(1) readonly buffer Act { uint act[]; };
STORAGE(2) buffer Out { uvec4 outs[]; };

#ifdef EXACT
#define LEADING 21u // the largest magnitude becomes 2^LEADING or more
#define XTEXELS 8u
#else
#define LEADING 11u
#define XTEXELS 4u
#endif

// An integer as the nearest float, which no conversion has to round.
float nearest(int i) {
	PRECISE float high = float(i >> 12) * 4096.0;
	PRECISE float y = high + float(i & 4095);
	return y;
}

void main() {
	uint b = gl_GlobalInvocationID.x;
	uint row = gl_WorkGroupID.y / p.parts;
	uint input_ = gl_WorkGroupID.y % p.parts;
	if (row >= batch[p.rows] || b >= p.blocks) return;
	uint src = p.src + row * p.srcStride + input_ * p.cols + 32u * b;
	uint n = min(32u, p.cols - 32u * b);
	uint bits[32];
	uint m = 0u; // magnitudes are compared as bits: NaN is above all
	for (uint i = 0u; i < 32u; i++) {
		bits[i] = i < n ? act[src + i] : 0u;
		m = max(m, bits[i] & 0x7FFFFFFFu);
	}
	uint e = m >> 23;
	float up = uintBitsToFloat((LEADING + 254u - min(e, 254u)) << 23);
	float scale = uintBitsToFloat((e - LEADING) << 23);
	if (e < 67u) {
		up = 0.0;
		scale = 0.0;
	}
	if (e == 255u) {
		up = 0.0;
		scale = uintBitsToFloat(0x7FC00000u);
	}
	int x[32];
	int sums[2];
	sums[0] = 0;
	sums[1] = 0;
	for (uint i = 0u; i < 32u; i++) {
		// 1.5·2²³ rounds to the nearest whole number, which the last bits then hold.
		PRECISE float v = up == 0.0 ? 0.0 : uintBitsToFloat(bits[i]) * up;
		PRECISE float r = v + 12582912.0;
		x[i] = int(floatBitsToUint(r) - 0x4B400000u);
		if (i < 16u) sums[0] += x[i];
		else sums[1] += x[i];
	}
	uint dst = p.dst + gl_WorkGroupID.y * p.dstStride + b * (XTEXELS + 1u);
	for (uint i = 0u; i < XTEXELS; i++) {
#ifdef EXACT
		outs[dst + i] = uvec4(ivec4(x[4u * i], x[4u * i + 1u], x[4u * i + 2u], x[4u * i + 3u]));
#else
		uvec4 v;
		v.x = (uint(x[8u * i]) & 0xFFFFu) | (uint(x[8u * i + 1u]) << 16);
		v.y = (uint(x[8u * i + 2u]) & 0xFFFFu) | (uint(x[8u * i + 3u]) << 16);
		v.z = (uint(x[8u * i + 4u]) & 0xFFFFu) | (uint(x[8u * i + 5u]) << 16);
		v.w = (uint(x[8u * i + 6u]) & 0xFFFFu) | (uint(x[8u * i + 7u]) << 16);
		outs[dst + i] = v;
#endif
	}
	outs[dst + XTEXELS] = floatBitsToUint(vec4(scale, nearest(sums[0] + sums[1]), nearest(sums[0]), nearest(sums[1])));
}
