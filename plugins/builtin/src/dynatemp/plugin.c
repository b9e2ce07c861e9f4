/* dynatemp, dynamic temperature (kalomaze, llama.cpp issue 3483): the temperature moves
 * within a range with the entropy of the distribution. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static float range;
static double exponent, base;

GG_OPEN {
	range = (float)gg_number("/config/range", 0.5);
	exponent = gg_number("/config/exponent", 1);
	base = gg_number("/config/temperature", -1);
	return 0;
}

GG_HOOK(gg_logits) {
	float middle = base >= 0 ? (float)base : f->temperature;
	f->temperature = middle;
	if (range <= 0) return base >= 0 ? GG_TEMP : 0;
	if (f->n_finite < 2) return 0;
	float low = middle > range ? middle - range : 0, high = middle + range;
	double share = f->entropy / gg_log(f->n_finite);
	if (share < 0) share = 0;
	f->temperature = low + (high - low) * (float)gg_pow(share, exponent);
	return GG_TEMP;
}
