// The elementary functions of exact mode: gpu/ops/numerics.go in the same order of
// roundings, bit for bit. Every product is a variable of its own and PRECISE, so that
// no compiler may fuse it with an addition. NaN is asked for by its bits, since shading
// languages promise nothing about it; halves are rounded by integers, because drivers
// round packHalf2x16 as they like and may flush small values.
//
// numerics_fast.glsl has the same names for fast mode.

#include "half.glsl"

// The integer nearest to x for |x| < 2²², ties to even: adding 1.5·2²³ rounds, and the
// integer stands in the last bits of the sum. Taking it from the bits, not by a
// subtraction, keeps it whole where a compiler may reorder sums.
int roundToInt(float x) {
	PRECISE float t = x + 12582912.0;
	return int(floatBitsToUint(t) - 0x4B400000u);
}

float Exp(float x) {
	if (isNaN(x)) return x;
	if (x < -87.33) return 0.0;
	float y = x > 88.0 ? 88.0 : x;
	PRECISE float t = y * 1.44269504088896341;
	int i = roundToInt(t);
	float n = float(i);
	// n·0.693359375 = n·355/512 is exact either way; as a product of n, compilers that
	// may reorder would add its factor to that of the next one.
	PRECISE float a = float(i * 355) * 0.001953125;
	PRECISE float r = y - a;
	PRECISE float b = n * -2.12194440e-4;
	PRECISE float s = r - b;
	PRECISE float p = 1.9875691500e-4;
	PRECISE float q;
	q = p * s; p = q + 1.3981999507e-3;
	q = p * s; p = q + 8.3334519073e-3;
	q = p * s; p = q + 4.1665795894e-2;
	q = p * s; p = q + 1.6666665459e-1;
	q = p * s; p = q + 5.0000001201e-1;
	PRECISE float s2 = s * s;
	q = p * s2;
	PRECISE float u = q + s;
	// u + 1, halved: a sum of three would be taken apart. The exponent puts it right.
	PRECISE float h = 0.5 * u;
	PRECISE float v = h + 0.5;
	return uintBitsToFloat(floatBitsToUint(v) + (uint(i + 1) << 23));
}

float Recip(float x) {
	PRECISE float r = uintBitsToFloat(0x7EF311C7u - floatBitsToUint(x));
	PRECISE float m;
	PRECISE float e;
	PRECISE float d;
	for (int i = 0; i < 4; i++) {
		m = x * r;
		e = 1.0 - m;
		d = r * e;
		r = r + d;
	}
	return r;
}

float Rsqrt(float x) {
	PRECISE float r = uintBitsToFloat(0x5F375A86u - (floatBitsToUint(x) >> 1));
	PRECISE float h = 0.5 * x;
	PRECISE float t;
	PRECISE float u;
	PRECISE float v;
	for (int i = 0; i < 3; i++) {
		t = h * r;
		u = t * r;
		v = 1.5 - u;
		r = r * v;
	}
	return r;
}

float Ln(float x) {
	uint bits = floatBitsToUint(x);
	PRECISE float e = float(int(bits >> 23) - 126);
	PRECISE float m = uintBitsToFloat((bits & 0x007FFFFFu) | 0x3F000000u);
	if (m < 0.707106781186547524) {
		e = e - 1.0;
		m = m + m;
	}
	m = m - 1.0;
	PRECISE float z = m * m;
	PRECISE float p = 7.0376836292e-2;
	PRECISE float q;
	q = p * m; p = q + -1.1514610310e-1;
	q = p * m; p = q + 1.1676998740e-1;
	q = p * m; p = q + -1.2420140846e-1;
	q = p * m; p = q + 1.4249322787e-1;
	q = p * m; p = q + -1.6668057665e-1;
	q = p * m; p = q + 2.0000714765e-1;
	q = p * m; p = q + -2.4999993993e-1;
	q = p * m; p = q + 3.3333331174e-1;
	q = p * m;
	PRECISE float y = q * z;
	q = e * -2.12194440e-4;
	y = y + q;
	q = 0.5 * z;
	y = y - q;
	PRECISE float s = m + y;
	q = e * 0.693359375;
	PRECISE float result = s + q;
	return result;
}

float TanhF(float x) {
	float a = uintBitsToFloat(floatBitsToUint(x) & 0x7FFFFFFFu);
	if (isNaN(x)) return x;
	PRECISE float q;
	if (a < 0.625) {
		PRECISE float z = x * x;
		PRECISE float p = -5.70498872745e-3;
		q = p * z; p = q + 2.06390887954e-2;
		q = p * z; p = q - 5.37397155531e-2;
		q = p * z; p = q + 1.33314422036e-1;
		q = p * z; p = q - 3.33332819422e-1;
		q = p * z;
		PRECISE float s = q * x;
		PRECISE float result = x + s;
		return result;
	}
	PRECISE float t = 1.0;
	if (a < 9.0) {
		PRECISE float a2 = a + a;
		PRECISE float e = Exp(a2);
		PRECISE float e1 = e + 1.0;
		q = 2.0 * Recip(e1);
		t = 1.0 - q;
	}
	return x < 0.0 ? -t : t;
}

float SigmoidF(float x) {
	PRECISE float e;
	PRECISE float s;
	if (x >= 0.0) {
		e = Exp(-x);
		s = 1.0 + e;
		return Recip(s);
	}
	e = Exp(x);
	s = 1.0 + e;
	PRECISE float result = e * Recip(s);
	return result;
}

float SoftplusF(float x) {
	if (isNaN(x) || x > 20.0) return x;
	PRECISE float e = Exp(x);
	PRECISE float s = 1.0 + e;
	return Ln(s);
}

// erf by Abramowitz and Stegun 7.1.26.
float erfF(float x) {
	float a = uintBitsToFloat(floatBitsToUint(x) & 0x7FFFFFFFu);
	PRECISE float q = 0.3275911 * a;
	PRECISE float d = 1.0 + q;
	PRECISE float t = Recip(d);
	PRECISE float p = 1.061405429;
	q = p * t; p = q - 1.453152027;
	q = p * t; p = q + 1.421413741;
	q = p * t; p = q - 0.284496736;
	q = p * t; p = q + 0.254829592;
	q = p * t;
	PRECISE float a2 = a * a;
	PRECISE float s = q * Exp(-a2);
	PRECISE float y = 1.0 - s;
	return x < 0.0 ? -y : y;
}

// GELU in its tanh form, a function of halves between −10 and 10.
float geluF(float x) {
	if (x <= -10.0) return 0.0;
	if (x >= 10.0) return x;
	PRECISE float h = roundHalf(x);
	PRECISE float h2 = h * h;
	PRECISE float q = 0.044715 * h2;
	PRECISE float s = q + 1.0;
	PRECISE float c = 0.79788456080286535588 * h;
	PRECISE float i = c * s;
	PRECISE float t = 1.0 + TanhF(i);
	PRECISE float h5 = 0.5 * h;
	PRECISE float y = h5 * t;
	return roundHalf(y);
}

#include "activations.glsl"
