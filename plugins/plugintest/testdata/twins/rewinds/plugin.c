/* The fault: it takes tokens back itself and does not forget what others take back. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static uint32_t count, asked[64];

GG_HOOK(gg_plan) {
	gg_edit(f, 300 + count % 32, GG_ADD, 40);
	return GG_EDITS;
}

GG_HOOK(gg_accept) {
	count += f->in_n;
	if (f->flags & GG_REPLAY || f->step % 20 != 7 || asked[f->step % 64]++) return 0;
	count -= f->backtrack = 3;
	return GG_BACKTRACK;
}

GG_HOOK(gg_rollback) { return 0; }
