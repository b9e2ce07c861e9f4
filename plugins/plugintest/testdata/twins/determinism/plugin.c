/* The fault: a text depends on the machine. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

GG_HOOK(gg_logits) {
	gg_edit(f, gg_ids(f)[0], GG_ADD, f->flags & GG_INTERPRETER ? 0 : -1.5f);
	return GG_EDITS;
}
