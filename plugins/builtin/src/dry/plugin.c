/* dry, "don't repeat yourself" (p-e-w, text-generation-webui PR 5677): a token that would
 * go on with something already said is made the less likely the longer the repetition. */
#include "ganglion.h"
#include <wasm_simd128.h>

GG_PLUGIN("manifest.json")

enum { MOST = 2048, TAILS = 12, TAIL_TOKENS = 20, BREAKER_BYTES = 40, BREAKERS = 12 };

static float multiplier, base;
static uint32_t allowed, last_n, longest; /* longest: repetition after which the penalty stays */
static uint16_t same[MOST];               /* same[k]: tokens that agree when the history is moved by k */

/* A breaker ends a repetition. A token that contains it does so alone; one that ends with
 * its beginning does when the tokens of the rest follow. */
static uint32_t *single;
static struct tail {
	const uint32_t *heads;
	int32_t n;
	uint32_t tokens[TAIL_TOKENS];
} tails[TAILS];
static uint32_t n_tails;

static int has(const uint32_t *mask, uint32_t id) { return mask && mask[id >> 5] >> (id & 31) & 1; }

/* quoted writes a regular expression for "ends with text". */
static uint32_t quoted(const char *text, uint32_t n, char *out) {
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)text[i];
		if (c < 0x80 && !((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9')) out[k++] = '\\';
		out[k++] = (char)c;
	}
	out[k++] = '\\';
	out[k++] = 'z';
	return k;
}

/* add_single takes the tokens of a mask in that the host makes. */
static uint32_t *add_single(int32_t kind, const char *text, uint32_t n, uint32_t words) {
	uint32_t *mask = gg_malloc(words * 4, 16);
	if (!mask || gg_vocab_mask(kind, text, n, mask) < 0) return 0;
	if (!single) single = mask;
	else for (uint32_t i = 0; i < words; i++) single[i] |= mask[i];
	return mask;
}

static int add_breaker(const char *text, uint32_t n, uint32_t words) {
	static char pattern[2 * BREAKER_BYTES + 2];
	uint32_t *mask = add_single(GG_VOCAB_SUBSTRING, text, n, words);
	if (!mask) return 0;
	for (uint32_t cut = 1; cut < n && n_tails < TAILS; cut++) {
		if (((uint8_t)text[cut] & 0xC0) == 0x80) continue; /* inside a character */
		struct tail *t = &tails[n_tails];
		t->n = gg_tok_encode(text + cut, n - cut, 0, t->tokens, TAIL_TOKENS);
		if (t->n < 0) continue;
		if (mask == single && !(mask = gg_malloc(words * 4, 16))) return 0;
		uint32_t k = quoted(text, cut, pattern);
		if (gg_vocab_mask(GG_VOCAB_REGEX, pattern, k, mask) <= 0) continue;
		t->heads = mask;
		mask = single;
		n_tails++;
	}
	return 1;
}

GG_OPEN {
	multiplier = (float)gg_number("/config/multiplier", 0.8);
	base = (float)gg_number("/config/base", 1.75);
	allowed = (uint32_t)gg_number("/config/allowed_length", 2);
	last_n = (uint32_t)gg_number("/config/last_n", MOST);
	if (multiplier == 0 || base < 1 || last_n == 0) return 1;
	longest = MOST;
	if (base > 1.000001f) longest = allowed + (uint32_t)(88.7228391 / gg_log(base));
	uint32_t vocab = (uint32_t)gg_number("/model/vocab", 0);
	char text[BREAKER_BYTES], set[4 * BREAKERS + 2] = "[";
	uint32_t n_set = 1, words = (vocab + 31) / 32;
	int32_t count = gg_length("/config/breakers");
	for (int32_t i = 0; i < count; i++) {
		int32_t n = gg_string_at("/config/breakers", (uint32_t)i, text, sizeof text);
		if (n < 0) return gg_fail("dry: a breaker has more than 40 bytes");
		if (n == 1 && i < BREAKERS) { /* all single characters are one question: each looks at the whole vocabulary */
			uint8_t c = (uint8_t)text[0];
			set[n_set++] = '\\', set[n_set++] = 'x', set[n_set++] = "0123456789abcdef"[c >> 4], set[n_set++] = "0123456789abcdef"[c & 15];
		} else if (n && !add_breaker(text, (uint32_t)n, words)) return gg_fail("dry: no memory for the breakers");
	}
	set[n_set++] = ']';
	if (n_set > 2 && !add_single(GG_VOCAB_REGEX, set, n_set, words)) return gg_fail("dry: no memory for the breakers");
	return 0;
}

/* limit says how long a repetition may be before a breaker cuts it; h ends at h[n-1]. */
static uint32_t limit(const uint32_t *h, uint32_t n) {
	if (!single) return n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = h[n - 1 - i];
		int32_t best = has(single, id) ? 0 : -1;
		for (uint32_t k = 0; k < n_tails; k++) {
			struct tail *t = &tails[k];
			if (t->n <= best || t->n > (int32_t)i || !has(t->heads, id)) continue;
			int32_t j = 0;
			while (j < t->n && t->tokens[j] == h[n - i + (uint32_t)j]) j++;
			if (j == t->n) best = j;
		}
		if (best >= 0) return i - (uint32_t)best;
	}
	return n;
}

/* next_match returns the first k' >= k with h[n-1-k'] == h[n-1], or n. */
static uint32_t next_match(const uint32_t *h, uint32_t n, uint32_t k) {
	v128_t last = wasm_i32x4_splat((int32_t)h[n - 1]);
	for (; k + 4 <= n; k += 4) {
		uint32_t hit = wasm_i32x4_bitmask(wasm_i32x4_eq(wasm_v128_load(h + n - 4 - k), last));
		if (hit) return k + (uint32_t)__builtin_clz(hit << 28);
	}
	while (k < n && h[n - 1 - k] != h[n - 1]) k++;
	return k;
}

/* penalise keeps the longest repetition of each token in its edit. */
static void penalise(gg_frame *f, uint32_t id, uint32_t length) {
	gg_edit_record *r = (gg_edit_record *)gg_at(f, f->edit_off);
	if (has(single, id)) return;
	if (length > longest) length = longest;
	float value = (float)length;
	for (uint32_t i = 0; i < f->edit_n; i++)
		if (r[i].id_op == id) {
			if (r[i].value < value) r[i].value = value;
			return;
		}
	gg_edit(f, id, GG_ADD, value);
}

/* The Z-algorithm, over the history read backwards: same[k] = min over what is known from
 * the widest match so far, then by comparison; every token is compared once. */
GG_HOOK(gg_plan) {
	uint32_t n = f->history_len < last_n ? f->history_len : last_n;
	const uint32_t *h = gg_history(f) + f->history_len - n;
	if (n > MOST) h += n - MOST, n = MOST;
	if (n <= allowed) return 0;
	uint32_t most = limit(h, n), from = 0, to = 0; /* the match moved by from ends before to */
	if (most < allowed) return 0;
	for (uint32_t k = 1; k < n; k++) {
		uint32_t z = 0;
		if (k < to && same[k - from] < to - k) {
			z = same[k - from];
		} else {
			if (k >= to) {
				uint32_t next = next_match(h, n, k);
				__builtin_memset(same + k, 0, (next - k) * sizeof *same);
				if (next == n) break;
				to = k = next;
			}
			while (to < n && h[n - 1 - to] == h[n - 1 - (to - k)]) to++;
			z = to - k;
			from = k;
		}
		same[k] = (uint16_t)z;
		if (z > most) z = most;
		if (z >= allowed && k > 0) penalise(f, h[n - k], z);
	}
	gg_edit_record *r = (gg_edit_record *)gg_at(f, f->edit_off);
	for (uint32_t i = 0; i < f->edit_n; i++)
		r[i].value = -multiplier * (float)gg_pow(base, r[i].value - (float)allowed);
	return f->edit_n ? GG_EDITS : 0;
}
