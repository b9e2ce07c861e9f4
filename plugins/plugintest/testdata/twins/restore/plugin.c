/* The fault: plan is not called again for the tokens of a text that is read again. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static uint32_t count;

GG_HOOK(gg_accept) { return 0; }

GG_HOOK(gg_plan) {
	gg_edit(f, 300 + count++, GG_ADD, 40);
	return GG_EDITS;
}
