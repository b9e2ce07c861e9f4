/* The fault: memory that is never given back. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static float *last;

GG_HOOK(gg_logits) {
	float *now = gg_malloc(256 * sizeof(float), 4);
	if (!now) return gg_fail("no memory");
	for (uint32_t i = 0; i < f->cand_n; i++) now[i] = gg_logit_values(f)[i];
	if (last && last[0] == now[0]) gg_edit(f, gg_ids(f)[0], GG_ADD, -1);
	last = now;
	return GG_EDITS;
}
