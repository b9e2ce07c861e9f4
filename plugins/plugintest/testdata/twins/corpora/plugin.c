/* The fault: with one candidate left it divides by zero. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

GG_HOOK(gg_logits) {
	uint32_t other = 1 + f->random[0] % (f->cand_n - 1);
	gg_edit(f, gg_ids(f)[other], GG_ADD, 0.5f);
	return GG_EDITS;
}
