/* trie.h: the vocabulary as a prefix tree (ABI.md, vocab_load kind 1). */
#ifndef TRIE_H
#define TRIE_H

#include "ganglion.h"

static struct trie_node {
	uint32_t token; /* TRIE_NONE: none ends here */
	uint32_t link;  /* byte | first node behind this subtree << 8 */
} *trie;
static uint32_t trie_n;

#define TRIE_NONE 0xFFFFFFFFu

static inline uint32_t trie_next(uint32_t i) { return trie[i].link >> 8; }
static inline uint8_t trie_byte(uint32_t i) { return (uint8_t)trie[i].link; }

/* trie_load brings the tree into memory; only in gg_open. */
static int trie_load(void) {
	int32_t bytes = gg_vocab_bytes(GG_VOCAB_TRIE);
	/* The host maps the tree where the address is a multiple of 64 KiB. */
	uint32_t *at = bytes > 0 ? gg_malloc((uint32_t)bytes, 65536) : 0;
	if (!at || gg_vocab_load(GG_VOCAB_TRIE, at) < 0) return 0;
	trie_n = at[0];
	trie = (struct trie_node *)(at + 1);
	return 1;
}

#endif
