/* language-lock: the letters of the text are of the given scripts. Digits, signs and
 * spaces are free; pieces of characters are not, for they can spell any letter. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

static uint32_t *allowed, words;
static int written;

static int join(int32_t kind, int without) {
	uint32_t *m = gg_malloc(words * 4, 16);
	if (!m || gg_vocab_mask(kind, 0, 0, m) < 0) return 0;
	for (uint32_t w = 0; w < words; w++) allowed[w] = without ? allowed[w] & ~m[w] : allowed[w] | m[w];
	return 1;
}

GG_OPEN {
	char scripts[256];
	int32_t n = gg_string("/config/scripts", scripts, sizeof scripts);
	words = ((uint32_t)gg_number("/model/vocab", 0) + 31) / 32;
	allowed = gg_malloc(words * 4, 16);
	if (n < 0 || !allowed || gg_vocab_mask(GG_VOCAB_LETTERS, scripts, (uint32_t)n, allowed) < 0)
		return gg_fail("language-lock: unknown script");
	if (!join(GG_VOCAB_BROKEN, gg_number("/config/pieces", 0) == 0) || !join(GG_VOCAB_CONTROL, 1) || !join(GG_VOCAB_EOG, 0))
		return gg_fail("language-lock: no memory for the masks");
	return 0;
}

/* The host keeps what is in the mask, so it is written once. */
GG_HOOK(gg_plan) {
	if (!written) __builtin_memcpy(gg_mask(f), allowed, words * 4);
	written = 1;
	return GG_MASK;
}
