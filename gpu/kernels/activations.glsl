// The activation function of ops.Act; what it is made of is in numerics.glsl or
// numerics_fast.glsl.
#define ACT_IDENTITY 0u
#define ACT_SILU 1u
#define ACT_GELU 2u
#define ACT_GELU_ERF 3u
#define ACT_GELU_QUICK 4u
#define ACT_RELU 5u
#define ACT_RELU2 6u
#define ACT_SIGMOID 7u
#define ACT_TANH 8u
#define ACT_SOFTPLUS 9u
#define ACT_EXPONENTIAL 10u

float activate(uint act, float x) {
	PRECISE float y = x;
	PRECISE float t;
	if (act == ACT_SILU) {
		y = x * SigmoidF(x);
	} else if (act == ACT_GELU) {
		y = geluF(x);
	} else if (act == ACT_GELU_ERF) {
		t = x * 0.70710678118654752440;
		PRECISE float s = 1.0 + erfF(t);
		PRECISE float h = 0.5 * x;
		y = h * s;
	} else if (act == ACT_GELU_QUICK) {
		t = 1.702 * x;
		y = x * SigmoidF(t);
	} else if (act == ACT_RELU || act == ACT_RELU2) {
		t = x < 0.0 || x == 0.0 ? 0.0 : x;
		y = act == ACT_RELU2 ? t * t : t;
	} else if (act == ACT_SIGMOID) {
		y = SigmoidF(x);
	} else if (act == ACT_TANH) {
		y = TanhF(x);
	} else if (act == ACT_SOFTPLUS) {
		y = SoftplusF(x);
	} else if (act == ACT_EXPONENTIAL) {
		y = Exp(x);
	}
	return y;
}
