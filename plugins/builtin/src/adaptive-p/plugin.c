/* adaptive-p (MrJackSpade, llama.cpp PR 17927): prefers tokens near a target probability,
 * and moves the target against the mean of what was chosen before. */
#include "ganglion.h"
#include "draw.h"

GG_PLUGIN("manifest.json")

enum { MOST = 4096 };
static const float width = 0.3f, peak = 5, sharpness = 10;
static float target, decay, weighted, weight, chosen;
static uint32_t token;
static float odds[MOST];

GG_OPEN {
	target = (float)gg_number("/config/target", 0.55);
	decay = (float)gg_number("/config/decay", 0.9);
	if (target < 0) return 1;
	weighted = target / (1 - decay);
	weight = 1 / (1 - decay);
	return 0;
}

/* Near the target the preference falls as a square, far from it as a line. */
static float preference(float p, float aim) {
	float d = __builtin_fabsf(p - aim) / width;
	return peak - sharpness * d * d / (1 + d);
}

GG_HOOK(gg_choose) {
	uint32_t n = f->cand_n < MOST ? f->cand_n : MOST, pick = 0;
	if (n == 0) return gg_fail("adaptive-p: no candidates");
	double sum = 0, run = 0;
	for (uint32_t i = 0; i < n; i++) sum += odds[i] = (float)draw_weight(f, i);
	float aim = weight == 0 ? target : 2 * target - weighted / weight;
	aim = aim < 0 ? 0 : aim > 1 ? 1 : aim;
	double odds_sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		odds[i] = odds[i] > 0 ? (float)gg_exp(preference((float)(odds[i] / sum), aim) - peak) : 0;
		odds_sum += odds[i];
	}
	double at = odds_sum * (f->random[0] * 0x1p-32);
	for (uint32_t i = 0; i < n; i++) {
		if (odds[i] == 0) continue;
		pick = i;
		if ((run += odds[i]) > at) break;
	}
	token = f->token = gg_ids(f)[pick];
	chosen = (float)(draw_weight(f, pick) / sum);
	return GG_TOKEN;
}

GG_HOOK(gg_accept) {
	if (f->token == token) {
		weighted = chosen + decay * weighted;
		weight = 1 + decay * weight;
	}
	token = ~0u;
	return 0;
}
