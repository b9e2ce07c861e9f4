/* The fault: it asks for the time of day, which no plugin is given. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

__attribute__((import_module("env"), import_name("time"))) int64_t time_of_day(void);

GG_HOOK(gg_logits) {
	gg_edit(f, gg_ids(f)[0], GG_ADD, time_of_day() & 1 ? 0.5f : 0);
	return GG_EDITS;
}
