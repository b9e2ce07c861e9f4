/* cfg, classifier-free guidance (Sanchez et al., "Stay on topic with Classifier-Free
 * Guidance", 2023): moves the candidates away from what the model would say behind a
 * negative prompt. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

enum { PROMPT = 2048, MOST = 4096 };

static uint32_t prompt[PROMPT];
static int32_t n_prompt, second;
static float scale, other[MOST];

GG_OPEN {
	static char text[8192];
	int32_t n = gg_string("/config/negative_prompt", text, sizeof text);
	scale = (float)gg_number("/config/scale", 1.5);
	if (scale == 1) return 1;
	n_prompt = n < 0 ? -1 : gg_tok_encode(text, (uint32_t)n, GG_ENCODE_SPECIAL | GG_ENCODE_BEGIN, prompt, PROMPT);
	return n_prompt <= 0 ? gg_fail("cfg: the negative prompt must be 1 to 2048 tokens") : 0;
}

GG_HOOK(gg_prompt) {
	second = gg_aux_open(prompt, (uint32_t)n_prompt, 0);
	return second < 0 ? gg_fail("cfg: no second sequence can be opened") : 0;
}

/* log p = log p' + scale (log p - log p'), p' being the second sequence's. The tokens
 * behind the view have no share. */
GG_HOOK(gg_logits) {
	float stats[5], *logits = gg_logit_values(f);
	uint32_t n = f->cand_n < MOST ? f->cand_n : MOST;
	if (gg_aux_stats(second, stats) < 0 || gg_aux_logits(second, gg_ids(f), n, other) < 0)
		return gg_fail("cfg: the second sequence is gone");
	for (uint32_t i = 0; i < n; i++) {
		float with = logits[i] - f->logsumexp, without = other[i] - stats[3];
		logits[i] = without + scale * (with - without);
	}
	f->cand_n = n;
	return GG_CANDS;
}
