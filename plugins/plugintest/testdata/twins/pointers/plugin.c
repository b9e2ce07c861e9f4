/* The fault: it ends its list of candidates with a mark, one behind the last that there is
 * room for. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

GG_HOOK(gg_logits) {
	gg_ids(f)[f->cand_n] = 0xffffffff;
	uint32_t n = 0;
	for (const uint32_t *id = gg_ids(f); *id != 0xffffffff; id++) n++;
	gg_edit(f, gg_ids(f)[n / 2], GG_ADD, -1);
	return GG_EDITS;
}
