/* The fault: a call of some ten milliseconds, for which its own stream waits. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

GG_HOOK(gg_logits) {
	uint32_t h = f->step;
	if (f->step % 97 == 13)
		for (uint32_t k = 0; k < 40; k++, gg_rest())
			for (uint32_t i = 0; i < 100000; i++) h = (h ^ h >> 15) * 0x2c1b3c6du + i;
	gg_edit(f, gg_ids(f)[0], GG_ADD, (float)(h & 1));
	return GG_EDITS;
}
