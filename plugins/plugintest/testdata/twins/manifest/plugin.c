/* The fault: "strong" is in the schema, and gg_open does not know it. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static float bias;

GG_OPEN {
	char mode[8];
	static const char place[] = "/config/mode";
	if (gg_open_str(place, sizeof place - 1, mode, sizeof mode) < 3) return gg_fail("no mode");
	if (mode[0] == 'o') return 1;
	if (mode[0] != 'w') return gg_fail("no such mode");
	bias = 0.5f;
	return 0;
}

GG_HOOK(gg_logits) {
	gg_edit(f, gg_ids(f)[0], GG_ADD, bias);
	return GG_EDITS;
}
