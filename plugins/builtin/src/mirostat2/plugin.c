/* mirostat2 (Basu et al., "Mirostat", 2021, version 2): draws among the tokens whose
 * surprise is at most mu, and moves mu so that the mean surprise comes to tau. */
#include "ganglion.h"
#include "draw.h"

GG_PLUGIN("manifest.json")

static float tau, eta, mu;

GG_OPEN {
	tau = (float)gg_json_number(gg_config(open, "tau"), 5);
	eta = (float)gg_json_number(gg_config(open, "eta"), 0.1);
	mu = 2 * tau;
	return 0;
}

GG_HOOK(gg_choose) {
	const float *logits = gg_logit_values(f);
	uint32_t n = f->cand_n, keep = 1;
	if (n == 0) return gg_fail("mirostat2: no candidates");
	/* -log2 p <= mu is the same as logit >= log(all) - mu ln 2. */
	double all = draw_log_total(f), least = all - (double)mu * LN2;
	while (keep < n && logits[keep] >= least) keep++;
	double drawn = draw(f, keep);
	mu -= eta * (float)(-gg_log(drawn) / LN2 - tau);
	return GG_TOKEN;
}
