/* mirostat2 (Basu et al., "Mirostat", 2021, version 2): draws among the tokens whose
 * surprise is at most mu, and moves mu so that the mean surprise comes to tau. */
#include "ganglion.h"
#include "draw.h"

GG_PLUGIN("manifest.json")

static float tau, eta, mu;

GG_OPEN {
	tau = (float)gg_number("/config/tau", 5);
	eta = (float)gg_number("/config/eta", 0.1);
	mu = 2 * tau;
	return 0;
}

/* The tail behind the view counts where the frame can tell its share, at temperature 1. */
GG_HOOK(gg_choose) {
	uint32_t n = f->cand_n, keep = 1;
	if (n == 0) return gg_fail("mirostat2: no candidates");
	double all = draw_total(f, n);
	if (f->temperature == 1 && f->cand_mass > 0 && f->cand_mass < 1) all /= f->cand_mass;
	/* -log2(weight / all) <= mu */
	double least = all * gg_exp(-(double)mu * LN2);
	while (keep < n && draw_weight(f, keep) >= least) keep++;
	double drawn = draw(f, keep);
	mu -= eta * (float)(-gg_log(drawn) / LN2 - tau);
	return GG_TOKEN;
}
