/* multiple-choice: the answer is one of the given texts, whatever tokens spell it. */
#include "ganglion.h"
#include "trie.h"

GG_PLUGIN("manifest.json")

enum { CHOICES = 64, BYTES = 4096 };

static struct choice {
	const uint8_t *text;
	uint32_t n;
} choices[CHOICES];
static uint32_t n_choices, said, words; /* said: bytes of the answer so far */
static uint64_t live;                   /* bit i: choice i goes on from what was said */
static uint32_t *ends;                  /* mask of the tokens that end a text */

GG_OPEN {
	static uint8_t text[BYTES];
	int32_t count = gg_length("/config/choices");
	uint32_t used = 0;
	words = ((uint32_t)gg_number("/model/vocab", 0) + 31) / 32;
	for (; n_choices < (uint32_t)count && n_choices < CHOICES; n_choices++) {
		int32_t n = gg_string_at("/config/choices", n_choices, (char *)text + used, BYTES - used);
		if (n <= 0) return gg_fail("multiple-choice: choices must be texts, 4096 bytes together");
		choices[n_choices] = (struct choice){text + used, (uint32_t)n};
		live |= 1ull << n_choices;
		used += (uint32_t)n;
	}
	ends = gg_malloc(words * 4, 16);
	if (!ends || !trie_load()) return gg_fail("multiple-choice: no memory for the vocabulary");
	return gg_vocab_mask(GG_VOCAB_EOG, 0, 0, ends) < 0 ? gg_fail("multiple-choice: no end tokens") : 0;
}

/* allow marks every token that spells the next bytes of a choice. */
static void allow(gg_frame *f, const struct choice *c) {
	uint32_t i = 0, end = trie_n;
	for (uint32_t at = said; at < c->n; at++) {
		while (i < end && trie_byte(i) != c->text[at]) i = trie_next(i);
		if (i >= end) return;
		for (uint32_t twin = i; twin < end && trie_byte(twin) == c->text[at]; twin = trie_next(twin))
			if (trie[twin].token != TRIE_NONE) gg_mask_allow(f, trie[twin].token);
		end = trie_next(i);
		i++;
	}
}

GG_HOOK(gg_plan) {
	gg_mask_fill(f, 0);
	for (uint32_t i = 0; i < n_choices; i++) {
		if (!(live >> i & 1)) continue;
		allow(f, &choices[i]);
		if (said != choices[i].n) continue;
		for (uint32_t w = 0; w < words; w++) gg_mask(f)[w] |= ends[w];
	}
	return GG_MASK;
}

GG_HOOK(gg_accept) {
	uint8_t bytes[256];
	for (uint32_t t = 0; t < f->in_n; t++) {
		int32_t n = gg_tok_bytes(gg_tokens_in(f)[t], bytes, sizeof bytes);
		for (int32_t k = 0; k < n; k++, said++)
			for (uint32_t i = 0; i < n_choices; i++)
				if (said >= choices[i].n || choices[i].text[said] != bytes[k]) live &= ~(1ull << i);
	}
	for (uint32_t i = 0; i < n_choices; i++)
		if (live == 1ull << i && said == choices[i].n) {
			f->stop_reason = GG_STOP_STOP;
			return GG_STOP;
		}
	return 0;
}
