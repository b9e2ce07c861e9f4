/* mirostat (Basu et al., "Mirostat", 2021, version 1): estimates how fast probabilities
 * fall with rank, draws among the k tokens that would give the surprise mu, and moves mu
 * so that the mean surprise comes to tau. */
#include "ganglion.h"
#include "draw.h"

GG_PLUGIN("manifest.json")

static float tau, eta, mu;
static uint32_t m;

GG_OPEN {
	tau = (float)gg_number("/config/tau", 5);
	eta = (float)gg_number("/config/eta", 0.1);
	m = (uint32_t)gg_number("/config/m", 100);
	mu = 2 * tau;
	return 0;
}

/* exponent is the s of p(rank) ~ rank^-s, by least squares over the first m tokens. */
static double exponent(gg_frame *f) {
	const float *logits = gg_logit_values(f);
	uint32_t n = f->cand_n;
	double tb = 0, tt = 0;
	for (uint32_t i = 0; i + 1 < m && i + 1 < n; i++) {
		double t = gg_log((double)(i + 2) / (i + 1));
		tb += t * ((double)logits[i] - logits[i + 1]);
		tt += t * t;
	}
	return tb * draw_scale(f) / tt;
}

GG_HOOK(gg_choose) {
	uint32_t n = f->cand_n;
	if (n == 0) return gg_fail("mirostat: no candidates");
	double s = exponent(f), e = s - 1;
	double k = gg_pow(e * gg_pow(2, mu) / (1 - gg_pow(f->vocab, -e)), 1 / s);
	uint32_t keep = k >= n ? n : k >= 1 ? (uint32_t)k : 1;
	double drawn = draw(f, keep);
	mu -= eta * (float)(-gg_log(drawn) / LN2 - tau);
	return GG_TOKEN;
}
