// A block of 32 values as whole numbers: what quantize.glsl says of it. The including
// kernel has declared outs, a buffer of texels.
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

// putWhole rounds the values whose bits are given and writes them as the texels from at on.
void putWhole(uint bits[32], uint at) {
	uint m = 0u; // magnitudes are compared as bits: NaN is above all
	for (uint i = 0u; i < 32u; i++) m = max(m, bits[i] & 0x7FFFFFFFu);
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
	for (uint i = 0u; i < XTEXELS; i++) {
#ifdef EXACT
		ivec4 v = ivec4(x[4u * i], x[4u * i + 1u], x[4u * i + 2u], x[4u * i + 3u]);
		outs[at + i] = uvec4(((v >> 12) << 16) | (v & 4095));
#else
		uvec4 v;
		v.x = (uint(x[8u * i]) & 0xFFFFu) | (uint(x[8u * i + 1u]) << 16);
		v.y = (uint(x[8u * i + 2u]) & 0xFFFFu) | (uint(x[8u * i + 3u]) << 16);
		v.z = (uint(x[8u * i + 4u]) & 0xFFFFu) | (uint(x[8u * i + 5u]) << 16);
		v.w = (uint(x[8u * i + 6u]) & 0xFFFFu) | (uint(x[8u * i + 7u]) << 16);
		outs[at + i] = v;
#endif
	}
	outs[at + XTEXELS] = floatBitsToUint(vec4(scale, nearest(sums[0] + sums[1]), nearest(sums[0]), nearest(sums[1])));
}
