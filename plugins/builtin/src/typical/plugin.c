/* typical (Meister et al., "Locally Typical Sampling", 2022): keeps the tokens whose
 * surprise is nearest to the entropy, until they hold the probability p. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static double p;
static uint32_t min_keep;

GG_OPEN {
	p = gg_number("/config/p", 0.95);
	min_keep = (uint32_t)gg_number("/config/min_keep", 1);
	return p >= 1;
}

static float surprise_gap(gg_frame *f, const float *logits, uint32_t i) {
	return __builtin_fabsf(f->logsumexp - logits[i] - f->entropy);
}

/* The candidates come best first, so surprise only grows along them: the tokens that
 * stay are a run around the place where it equals the entropy, and the run grows on the
 * side that is nearer. */
GG_HOOK(gg_logits) {
	float *logits = gg_logit_values(f);
	uint32_t *ids = gg_ids(f), n = f->cand_n, lo = 0, hi;
	if (n < 2) return 0;
	while (lo + 1 < n && surprise_gap(f, logits, lo + 1) <= surprise_gap(f, logits, lo)) lo++;
	hi = lo;
	double sum = 0;
	while (hi - lo < n && !(sum > p && hi - lo >= min_keep)) {
		int left = lo > 0 && (hi == n || surprise_gap(f, logits, lo - 1) <= surprise_gap(f, logits, hi));
		uint32_t i = left ? --lo : hi++;
		sum += gg_exp((double)logits[i] - f->logsumexp);
	}
	if (hi - lo == n) return 0; /* the rest of the run may lie behind the view */
	__builtin_memmove(ids, ids + lo, (hi - lo) * 4);
	__builtin_memmove(logits, logits + lo, (hi - lo) * 4);
	f->cand_n = hi - lo;
	return GG_CANDS;
}
