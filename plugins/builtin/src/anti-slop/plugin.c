/* anti-slop: takes back a phrase as soon as it has been written, and bans the token that
 * began it at its place. Nobody sees it, for the host holds the text back. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

enum { PHRASES = 256, BYTES = 16384, LONGEST = 96, TOKENS = 24, BANS = 64 };

static struct phrase {
	const char *text;
	uint32_t n;
} phrases[PHRASES];
static uint32_t n_phrases;

/* The last tokens: their texts lie in tail one behind the other, in lower case. */
static struct {
	uint32_t id, step, from;
} tokens[TOKENS];
static uint32_t n_tokens, n_tail;
static char tail[TOKENS * 32 + 256];

static struct {
	uint32_t step, id;
} bans[BANS];
static uint32_t n_bans;

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c; }
static int letter(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || (uint8_t)c >= 0x80; }

GG_OPEN {
	static char text[BYTES];
	int32_t count = gg_length("/config/phrases");
	uint32_t used = 0;
	for (int32_t i = 0; i < count && i < PHRASES; i++) {
		int32_t n = gg_string_at("/config/phrases", (uint32_t)i, text + used, BYTES - used);
		if (n < 0 || n > LONGEST) return gg_fail("anti-slop: a phrase has more than 96 bytes");
		for (int32_t k = 0; k < n; k++) text[used + (uint32_t)k] = lower(text[used + (uint32_t)k]);
		if (n) phrases[n_phrases++] = (struct phrase){text + used, (uint32_t)n};
		used += (uint32_t)n;
	}
	return n_phrases == 0;
}

static void drop_first(uint32_t n) {
	uint32_t bytes = n < n_tokens ? tokens[n].from : n_tail;
	__builtin_memmove(tail, tail + bytes, n_tail -= bytes);
	__builtin_memmove(tokens, tokens + n, (n_tokens -= n) * sizeof *tokens);
	for (uint32_t i = 0; i < n_tokens; i++) tokens[i].from -= bytes;
}

static void remember(uint32_t id, uint32_t step) {
	if (n_tokens == TOKENS) drop_first(1);
	while (n_tokens && n_tail + 256 > sizeof tail) drop_first(1);
	int32_t n = gg_tok_bytes(id, tail + n_tail, 256);
	tokens[n_tokens].id = id;
	tokens[n_tokens].step = step;
	tokens[n_tokens++].from = n_tail;
	for (int32_t i = 0; i < n; i++, n_tail++) tail[n_tail] = lower(tail[n_tail]);
}

/* found returns where a phrase begins that ends behind byte from, as a whole word; or -1. */
static int32_t found(uint32_t from) {
	for (uint32_t i = 0; i < n_phrases; i++) {
		const struct phrase *p = &phrases[i];
		for (uint32_t end = from + 1; end <= n_tail; end++) {
			if (end < p->n) continue;
			uint32_t at = end - p->n;
			if (tail[end - 1] != p->text[p->n - 1] || !gg_same(tail + at, p->text, p->n)) continue;
			if (at > 0 && letter(tail[at]) && letter(tail[at - 1])) continue;
			return (int32_t)at;
		}
	}
	return -1;
}

GG_HOOK(gg_accept) {
	uint32_t from = n_tail;
	for (uint32_t i = 0; i < f->in_n; i++) remember(gg_tokens_in(f)[i], f->step + i);
	for (uint32_t i = 0; i < n_tokens; i++) /* older tokens may have left since */
		if (tokens[i].step == f->step) from = tokens[i].from;
	int32_t at = found(from);
	if (at < 0) return 0;
	uint32_t first = n_tokens - 1;
	while (tokens[first].from > (uint32_t)at) first--;
	if (n_bans == BANS) __builtin_memmove(bans, bans + 1, --n_bans * sizeof *bans);
	bans[n_bans].step = tokens[first].step;
	bans[n_bans++].id = tokens[first].id;
	f->backtrack = n_tokens - first;
	n_tail = tokens[first].from;
	n_tokens = first;
	return GG_BACKTRACK;
}

GG_HOOK(gg_plan) {
	for (uint32_t i = 0; i < n_bans; i++)
		if (bans[i].step == f->step) gg_edit(f, bans[i].id, GG_BAN, 0);
	return f->edit_n ? GG_EDITS : 0;
}
