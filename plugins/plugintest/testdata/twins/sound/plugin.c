/* No fault: what the twins are broken forms of. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")
GG_SECTION("ganglion.tests", "tests.jsonl")

GG_HOOK(gg_logits) {
	gg_edit(f, gg_ids(f)[0], GG_ADD, -1);
	return GG_EDITS;
}
