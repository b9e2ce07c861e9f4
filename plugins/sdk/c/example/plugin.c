/* top-a: keeps the tokens whose probability is at least a times the square of the best
 * one's: many where the model is unsure, few where it is sure. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static float log_a;

GG_OPEN {
	double a = gg_number("/config/a", 0.2);
	log_a = (float)gg_log(a);
	return a <= 0; /* 1: not interested */
}

GG_HOOK(gg_logits) {
	const float *logits = gg_logit_values(f);
	uint32_t keep = 1;
	if (f->cand_n == 0) return 0;
	float best = logits[0] - f->logsumexp; /* log p */
	float least = f->logsumexp + log_a + 2 * best;
	while (keep < f->cand_n && logits[keep] >= least) keep++;
	if (keep == f->cand_n) return 0;
	f->cand_n = keep;
	return GG_CANDS;
}
