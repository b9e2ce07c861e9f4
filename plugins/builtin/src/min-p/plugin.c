/* min-p: keeps the tokens that have at least p times the probability of the best one. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static float offset; /* log p */
static uint32_t min_keep;

GG_OPEN {
	double p = gg_number("/config/p", 0.05);
	min_keep = (uint32_t)gg_number("/config/min_keep", 1);
	if (p <= 0) return 1;
	offset = (float)gg_log(p);
	return 0;
}

GG_HOOK(gg_logits) {
	const float *logits = gg_logit_values(f);
	uint32_t n = f->cand_n, i = 1;
	if (n == 0) return 0;
	float least = logits[0] + offset;
	while (i < n && (logits[i] >= least || i < min_keep)) i++;
	if (i == n) return 0;
	f->cand_n = i;
	return GG_CANDS;
}
