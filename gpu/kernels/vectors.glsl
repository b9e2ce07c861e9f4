// Functions of numerics.glsl for four values at once, with the same bits, and without
// branches: what a branch leaves out is chosen afterwards. In fast mode the driver's own.

#define THE_SIGN 0x80000000u

uvec4 pick(uvec4 a, uvec4 b, bvec4 second) {
	return uvec4(second.x ? b.x : a.x, second.y ? b.y : a.y, second.z ? b.z : a.z, second.w ? b.w : a.w);
}

bvec4 areNaN(vec4 x) { return greaterThan(floatBitsToUint(x) & 0x7FFFFFFFu, uvec4(0x7F800000u)); }

#ifdef FAST

vec4 exps(vec4 x) { return exp(x); }
vec4 recips(vec4 x) { return 1.0 / x; }
vec4 tanhs(vec4 x) { return vec4(TanhF(x.x), TanhF(x.y), TanhF(x.z), TanhF(x.w)); }
vec4 widened(uvec2 w) { return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y)); }

#else

// See Exp for what is said in another way than in gpu/ops.
vec4 exps(vec4 x) {
	vec4 y = mix(x, vec4(88.0), greaterThan(x, vec4(88.0)));
	PRECISE vec4 t = y * 1.44269504088896341;
	PRECISE vec4 m = t + 12582912.0;
	ivec4 i = ivec4(floatBitsToUint(m) - 0x4B400000u);
	vec4 n = vec4(i);
	PRECISE vec4 q = vec4(i * 355) * 0.001953125;
	PRECISE vec4 s = y - q;
	q = n * -2.12194440e-4;
	s = s - q;
	PRECISE vec4 u = vec4(1.9875691500e-4);
	q = u * s; u = q + 1.3981999507e-3;
	q = u * s; u = q + 8.3334519073e-3;
	q = u * s; u = q + 4.1665795894e-2;
	q = u * s; u = q + 1.6666665459e-1;
	q = u * s; u = q + 5.0000001201e-1;
	PRECISE vec4 s2 = s * s;
	q = u * s2;
	u = q + s;
	q = 0.5 * u;
	u = q + 0.5;
	vec4 e = uintBitsToFloat(floatBitsToUint(u) + (uvec4(i + 1) << 23));
	e = mix(e, vec4(0.0), lessThan(x, vec4(-87.33)));
	return mix(e, x, areNaN(x));
}

vec4 recips(vec4 x) {
	PRECISE vec4 r = uintBitsToFloat(uvec4(0x7EF311C7u) - floatBitsToUint(x));
	PRECISE vec4 m;
	PRECISE vec4 e;
	for (int i = 0; i < 4; i++) {
		m = x * r;
		e = 1.0 - m;
		m = r * e;
		r = r + m;
	}
	return r;
}

vec4 tanhs(vec4 x) {
	vec4 a = uintBitsToFloat(floatBitsToUint(x) & 0x7FFFFFFFu);
	PRECISE vec4 z = x * x;
	PRECISE vec4 q = z * -5.70498872745e-3;
	PRECISE vec4 s = q + 2.06390887954e-2;
	q = s * z; s = q - 5.37397155531e-2;
	q = s * z; s = q + 1.33314422036e-1;
	q = s * z; s = q - 3.33332819422e-1;
	q = s * z;
	q = q * x;
	PRECISE vec4 small = x + q;
	PRECISE vec4 b = mix(a, vec4(9.0), greaterThanEqual(a, vec4(9.0)));
	b = b + b;
	b = exps(b);
	b = b + 1.0;
	b = 2.0 * recips(b);
	b = 1.0 - b;
	b = mix(b, vec4(1.0), greaterThanEqual(a, vec4(9.0)));
	b = uintBitsToFloat(floatBitsToUint(b) | (floatBitsToUint(x) & THE_SIGN));
	return mix(mix(b, small, lessThan(a, vec4(0.625))), x, areNaN(x));
}

// The four halves of two words, right where subnormal floats are flushed.
vec4 widened(uvec2 w) {
	uvec4 h = uvec4(w.x, w.x >> 16, w.y, w.y >> 16) & 0xFFFFu;
	uvec4 m = h & 0x7FFFu;
	uvec4 normal = (m << 13) + 0x38000000u;
	normal += pick(uvec4(0u), uvec4(0x38000000u), greaterThanEqual(m, uvec4(0x7C00u)));
	uvec4 small = floatBitsToUint(vec4(m) * 5.9604644775390625e-8);
	return uintBitsToFloat(pick(normal, small, lessThan(m, uvec4(0x400u))) | ((h & 0x8000u) << 16));
}

// roundHalf.
vec4 roundHalves(vec4 x) {
	uvec4 m = floatBitsToUint(x) & 0x7FFFFFFFu;
	uvec4 r = (m + 0xFFFu + ((m >> 13) & 1u)) & 0xFFFFE000u;
	r = pick(r, uvec4(0x7F800000u), greaterThanEqual(r, uvec4(0x47800000u)));
	PRECISE vec4 t = uintBitsToFloat(m) + 0.5; // its last bit is the smallest half
	uvec4 small = floatBitsToUint(vec4(floatBitsToUint(t) - 0x3F000000u) * 5.9604644775390625e-8);
	r = pick(r, small, lessThan(m, uvec4(0x38800000u)));
	return mix(uintBitsToFloat(r | (floatBitsToUint(x) & THE_SIGN)), x, areNaN(x));
}

#endif
