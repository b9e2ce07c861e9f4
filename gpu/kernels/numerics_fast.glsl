// The functions of numerics.glsl for fast mode, by the driver's own. The value of a
// function depends on its argument alone, so rows stay independent of each other.

#include "half.glsl"

float Exp(float x) { return exp(x); }

float Recip(float x) { return 1.0 / x; }

float Rsqrt(float x) { return inversesqrt(x); }

float Ln(float x) { return log(x); }

// tanh overflows on some drivers where e^2x does.
float TanhF(float x) {
	if (isNaN(x)) return x;
	float e = exp(-2.0 * abs(x));
	float t = (1.0 - e) / (1.0 + e);
	return x < 0.0 ? -t : t;
}

float SigmoidF(float x) {
	float e = exp(-abs(x));
	float s = 1.0 / (1.0 + e);
	return x >= 0.0 ? s : e * s;
}

float SoftplusF(float x) {
	if (isNaN(x) || x > 20.0) return x;
	return log(1.0 + exp(x));
}

// erf by Abramowitz and Stegun 7.1.26.
float erfF(float x) {
	float a = abs(x);
	float t = 1.0 / (1.0 + 0.3275911 * a);
	float p = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
	float y = 1.0 - p * exp(-a * a);
	return x < 0.0 ? -y : y;
}

// GELU in its tanh form, as (0.5·x)·(1 + tanh(u)) = x·σ(2u).
float geluF(float x) {
	if (x <= -10.0) return 0.0;
	if (x >= 10.0) return x;
	float u = 0.79788456080286535588 * x * (0.044715 * x * x + 1.0);
	return x * SigmoidF(2.0 * u);
}

#include "activations.glsl"
