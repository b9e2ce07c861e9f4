/* top-nσ (Tang et al., "Top-nσ: Not All Logits Are You Need", 2024): keeps the tokens
 * whose logit lies within n standard deviations below the largest one. The deviation is
 * that of the whole vocabulary, which the frame knows whatever the view. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static float n_sigma;

GG_OPEN {
	n_sigma = (float)gg_number("/config/n", 1);
	return n_sigma <= 0;
}

GG_HOOK(gg_logits) {
	const float *logits = gg_logit_values(f);
	uint32_t n = f->cand_n, keep = 1;
	if (n < 2) return 0;
	float least = f->max - n_sigma * f->std;
	while (keep < n && logits[keep] >= least) keep++;
	if (keep == n) return 0;
	f->cand_n = keep;
	return GG_CANDS;
}
