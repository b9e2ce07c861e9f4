/* xtc, "exclude top choices" (p-e-w, text-generation-webui PR 6335): now and then takes
 * out every token above a threshold but the least probable of them. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static float probability, log_threshold;
static uint32_t min_keep;

GG_OPEN {
	double threshold = gg_number("/config/threshold", 0.1);
	probability = (float)gg_number("/config/probability", 0.5);
	min_keep = (uint32_t)gg_number("/config/min_keep", 1);
	if (probability <= 0 || threshold > 0.5) return 1;
	log_threshold = (float)gg_log(threshold);
	return 0;
}

/* The tokens are banned one by one, so that the tail behind the view stays. */
GG_HOOK(gg_logits) {
	const float *logits = gg_logit_values(f);
	const uint32_t *ids = gg_ids(f);
	uint32_t n = f->cand_n, last = 0;
	if (n < 2 || gg_uniform(f->random[0]) > probability) return 0;
	float least = f->logsumexp + log_threshold;
	while (last + 1 < n && logits[last + 1] >= least) last++;
	if (last == 0 || f->n_finite - last < min_keep) return 0;
	for (uint32_t i = 0; i < last; i++) gg_edit(f, ids[i], GG_BAN, 0);
	return GG_EDITS;
}
