/* spans.h: the vocabulary as a prefix tree with the spans of its subtrees and tokens (ABI.md,
 * vocab_load kind 2): a set of bits, one for each kind of characters, with the number of
 * characters of the token, or of the longest token of the subtree from its node on. */
#ifndef SPANS_H
#define SPANS_H

#include "ganglion.h"
#include <wasm_simd128.h>

enum {
	SPAN_HIGH = 1 << 22, /* well-formed characters above 0x7F, the last one whole or not */
	SPAN_ODD = 1 << 23,  /* bytes that are no characters */
	SPAN_BITS = (1 << 24) - 1,
	SPAN_SHIFT = 24,
};

#define TRIE_NONE 0xFFFFFFFFu

static struct trie_node {
	uint32_t token; /* TRIE_NONE: none ends here */
	uint32_t link;  /* byte | first node behind this subtree << 8 */
	uint32_t span;
} *trie;
static uint32_t trie_n;
static uint32_t *token_spans, span_words; /* by token, of 32 a word of a mask */

static const char *const span_kinds[21] = {
	"abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", "\n", "\t\r", "\"", "\\", "'",
	",", ".", "-", "_", ":;!?", "()", "[]", "{}", "/@#&=+$%*^|~`", "<>",
};
static uint32_t span_bit[256]; /* of a byte; all bits above 0x7F */

/* spans_load brings them into memory, for at least so many words of a mask; only in
 * gg_open. */
static int spans_load(uint32_t words) {
	int32_t bytes = gg_vocab_bytes(GG_VOCAB_SPANS);
	uint32_t *at = bytes > 0 ? gg_malloc((uint32_t)bytes + 128 * (words + 1), 16) : 0;
	if (!at || gg_vocab_load(GG_VOCAB_SPANS, at) < 0) return 0;
	trie_n = at[0];
	trie = (struct trie_node *)(at + 2);
	token_spans = (uint32_t *)(trie + trie_n);
	uint32_t n = at[1];
	span_words = (n + 31) / 32 > words ? (n + 31) / 32 : words;
	for (; n < span_words * 32; n++) token_spans[n] = SPAN_ODD; /* the model has them, the tokenizer does not */
	for (uint32_t b = 0; b < 256; b++) span_bit[b] = b < 0x80 ? 1 << 21 : SPAN_BITS;
	for (uint32_t k = 0; k < 21; k++)
		for (const char *c = span_kinds[k]; *c; c++) span_bit[(uint8_t)*c] = 1u << k;
	return 1;
}

/* span_mask marks the tokens without the bits of bar that have at most so many characters. */
static void span_mask(uint32_t *mask, uint32_t bar, uint32_t most) {
	v128_t none = wasm_i32x4_const(0, 0, 0, 0), bars = wasm_i32x4_splat((int32_t)bar), longest = wasm_i32x4_splat((int32_t)most);
	const uint32_t *at = token_spans;
	for (uint32_t w = 0; w < span_words; w++) {
		uint32_t bits = 0;
		for (int k = 0; k < 8; k++, at += 4) {
			v128_t s = wasm_v128_load(at), without = wasm_i32x4_eq(wasm_v128_and(s, bars), none);
			bits |= wasm_i32x4_bitmask(wasm_v128_and(without, wasm_u32x4_le(wasm_u32x4_shr(s, SPAN_SHIFT), longest))) << 4 * k;
		}
		mask[w] = bits;
	}
}

#endif
