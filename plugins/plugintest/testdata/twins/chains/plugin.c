/* The fault: other plugins leave fewer candidates than it looks at. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

GG_HOOK(gg_logits) {
	if (f->cand_n > 1 && f->cand_n < 40) __builtin_trap();
	f->temperature = gg_logit_values(f)[0] > gg_logit_values(f)[f->cand_n > 39 ? 39 : 0] + 3 ? 0.7f : 1.0f;
	return GG_TEMP;
}
