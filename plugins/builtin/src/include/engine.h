/* engine.h: runs a grammar of rules.h beside a text.
 *
 * A state is a set of stacks; a stack is a place in the grammar with what follows when its
 * rule is over. Both are kept once each, and so are the steps from state to state by a
 * byte: what a grammar needs in use becomes a table, and a mask is a walk over the
 * vocabulary's tree with one look-up a node. Masks are kept by state. */
#ifndef ENGINE_H
#define ENGINE_H

#include "rules.h"
#include "trie.h"

enum {
	STACKS = 1 << 15, STATES = 2048, PARTS = 1 << 16, MEMBERS = 512, DEPTH = 400,
	MASKS = 24, PAST = 128, UNKNOWN = 0xFFFF, DEAD = 0,
};

static struct stack {
	uint32_t at, below; /* place of the next SET; stack behind it. Stack 0: the text may end */
} stacks[STACKS];
static uint32_t n_stacks, stack_hash[2 * STACKS];

static uint32_t parts[PARTS], n_parts; /* the states' stacks */
static struct state {
	uint32_t from, n;
} states[STATES]; /* state 0 is DEAD */
static uint32_t n_states, state_hash[2 * STATES];
static uint16_t *steps; /* [STATES][n_classes] */
static uint8_t class_of[256], class_byte[256];
static uint32_t n_classes, class_size[256];

static uint32_t state, start_rule, words;
static uint16_t past[PAST]; /* states before the last tokens, for rollback */
static uint32_t n_past;
static void *scratch; /* for make_room */
static uint32_t *ends, *masks; /* ends: tokens that end a text; masks: [MASKS][words] */
static uint32_t mask_of[MASKS], mask_age[MASKS], clock;
static int full; /* a table is full, or a stack too deep */

static uint32_t hash2(uint32_t a, uint32_t b) {
	uint32_t x = a * 0x9e3779b1u ^ b * 0x85ebca77u;
	return x ^ x >> 15;
}

static uint32_t intern_stack(uint32_t at, uint32_t below) {
	uint32_t h = hash2(at, below) % (2 * STACKS);
	for (; stack_hash[h]; h = (h + 1) % (2 * STACKS)) {
		uint32_t i = stack_hash[h];
		if (stacks[i].at == at && stacks[i].below == below) return i;
	}
	if (n_stacks == STACKS) return full = 1, 0;
	stacks[n_stacks] = (struct stack){at, below};
	return stack_hash[h] = n_stacks++;
}

/* members collects the stacks of a state; seen, the places that were opened on the way. */
static uint32_t members[MEMBERS], n_members, seen[4 * MEMBERS], n_seen;

/* follow adds the stacks from a place on, above a stack: rules are opened until a byte
 * is needed. A rule at the end of another takes its place, so that repetitions do not
 * grow. */
static void follow(uint32_t at, uint32_t below, int depth) {
	uint32_t e = elements[at];
	if (full) return;
	if (depth > DEPTH) {
		full = 1;
		return;
	}
	if (KIND(e) == END || KIND(e) == ALT) {
		if (below) follow(stacks[below].at, stacks[below].below, depth + 1);
	}
	uint32_t top = KIND(e) == END || KIND(e) == ALT ? 0 : intern_stack(at, below);
	if (KIND(e) != REF) {
		if (top == 0 && below) return;
		for (uint32_t i = 0; i < n_members; i++)
			if (members[i] == top) return;
		if (n_members == MEMBERS) full = 1;
		else members[n_members++] = top;
		return;
	}
	for (uint32_t i = 0; i < n_seen; i++)
		if (seen[i] == top) return;
	if (n_seen == 4 * MEMBERS) {
		full = 1;
		return;
	}
	seen[n_seen++] = top;
	uint32_t next = KIND(elements[at + 1]) <= ALT ? below : intern_stack(at + 1, below);
	for (uint32_t p = rule_at[VALUE(e)];; p++) {
		follow(p, next, depth + 1);
		while (KIND(elements[p]) > ALT) p++;
		if (KIND(elements[p]) == END) break;
	}
}

/* intern_state makes a state of the members. */
static uint32_t intern_state(void) {
	if (n_members == 0) return DEAD;
	for (uint32_t i = 1; i < n_members; i++) /* in order */
		for (uint32_t j = i; j > 0 && members[j - 1] > members[j]; j--) {
			uint32_t t = members[j];
			members[j] = members[j - 1], members[j - 1] = t;
		}
	uint32_t h = n_members;
	for (uint32_t i = 0; i < n_members; i++) h = hash2(h, members[i]);
	for (h %= 2 * STATES; state_hash[h]; h = (h + 1) % (2 * STATES)) {
		struct state *s = &states[state_hash[h]];
		if (s->n == n_members && gg_same(parts + s->from, members, n_members * 4)) return state_hash[h];
	}
	if (n_states == STATES || n_parts + n_members > PARTS) return full = 1, DEAD;
	states[n_states] = (struct state){n_parts, n_members};
	__builtin_memcpy(parts + n_parts, members, n_members * 4);
	n_parts += n_members;
	__builtin_memset(steps + n_states * n_classes, 0xFF, n_classes * 2);
	return state_hash[h] = n_states++;
}

static int may_end(uint32_t s) { return s != DEAD && parts[states[s].from] == 0; }

__attribute__((noinline)) static uint32_t step_slow(uint32_t s, uint32_t class) {
	n_members = n_seen = 0;
	for (uint32_t i = 0; i < states[s].n; i++) {
		uint32_t top = parts[states[s].from + i];
		if (top && set_has(VALUE(elements[stacks[top].at]), class_byte[class])) follow(stacks[top].at + 1, stacks[top].below, 0);
	}
	uint32_t next = intern_state();
	if (!full) steps[s * n_classes + class] = (uint16_t)next;
	return next;
}

static inline uint32_t step_by(uint32_t s, uint8_t byte) {
	uint32_t next = steps[s * n_classes + class_of[byte]];
	return next != UNKNOWN ? next : step_slow(s, class_of[byte]);
}

static void clear_tables(void) {
	__builtin_memset(stack_hash, 0, sizeof stack_hash);
	__builtin_memset(state_hash, 0, sizeof state_hash);
	__builtin_memset(mask_of, 0, sizeof mask_of);
	n_stacks = n_states = 1;
	n_parts = 0;
	full = 0;
	__builtin_memset(steps, 0, n_classes * 2); /* DEAD stays dead */
}

static uint32_t rebuilt(const struct stack *old, uint32_t i, int depth) {
	if (i == 0 || depth > 4 * DEPTH) return 0;
	return intern_stack(old[i].at, rebuilt(old, old[i].below, depth + 1));
}

/* make_room empties full tables but for the states that may still be needed. */
static int make_room(void) {
	struct stack *old = scratch;
	uint32_t *old_parts = (uint32_t *)(old + STACKS);
	struct state keep[PAST + 1];
	uint32_t kept = n_past < PAST ? n_past : PAST;
	__builtin_memcpy(old, stacks, sizeof stacks);
	__builtin_memcpy(old_parts, parts, sizeof parts);
	keep[PAST] = states[state];
	for (uint32_t i = 0; i < kept; i++) keep[i] = states[past[i]];
	clear_tables();
	for (uint32_t i = 0; i <= PAST; i++) {
		if (i >= kept && i < PAST) continue;
		n_members = 0;
		for (uint32_t k = 0; k < keep[i].n; k++) members[n_members++] = rebuilt(old, old_parts[keep[i].from + k], 0);
		uint32_t s = intern_state();
		if (i == PAST) state = s;
		else past[i] = (uint16_t)s;
	}
	return !full;
}

/* classes puts together the bytes that no set of the grammar tells apart. */
static void make_classes(void) {
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t c = 0;
		for (; c < n_classes; c++) {
			uint32_t i = 0;
			while (i < n_sets && set_has(i, b) == set_has(i, class_byte[c])) i++;
			if (i == n_sets) break;
		}
		if (c == n_classes) class_byte[n_classes++] = (uint8_t)b;
		class_of[b] = (uint8_t)c;
		class_size[c]++;
	}
}

/* engine_open readies the grammar; fault is set where that fails. */
static void engine_open(uint32_t start) {
	for (uint32_t r = 0; r < n_rules && !fault; r++)
		if (rule_at[r] == ELEMENTS) set_fault("a rule is used that is not there");
	if (fault) return;
	words = ((uint32_t)gg_number("/model/vocab", 0) + 31) / 32;
	make_classes();
	steps = gg_malloc(STATES * n_classes * 2, 16);
	ends = gg_malloc(words * 4, 16);
	masks = gg_malloc(MASKS * words * 4, 16);
	scratch = gg_malloc(sizeof stacks + sizeof parts, 16);
	if (!steps || !ends || !masks || !scratch || !trie_load()) {
		set_fault("no memory for the vocabulary");
		return;
	}
	if (gg_vocab_mask(GG_VOCAB_EOG, 0, 0, ends) < 0) set_fault("the vocabulary has no end tokens");
	clear_tables();
	n_members = n_seen = 0;
	start_rule = start;
	for (uint32_t p = rule_at[start];; p++) {
		follow(p, 0, 0);
		while (KIND(elements[p]) > ALT) p++;
		if (KIND(elements[p]) == END) break;
	}
	state = intern_state();
	if (full) set_fault("the grammar is left-recursive or too ambiguous");
}

/* walk marks the tokens that a state allows. Fuel is charged by what stands in the loop,
 * so what is rare is called. */
static void walk(uint32_t s, uint32_t *mask) {
	static struct {
		uint32_t end, state;
	} path[512];
	const struct trie_node *nodes = trie;
	uint32_t depth = 0, end = trie_n, i = 0;
	const uint16_t *row = steps + s * n_classes;
	__builtin_memset(mask, 0, words * 4);
	path[0].end = trie_n;
	path[0].state = s;
	while (i < trie_n) {
		if (i >= end) { /* back to the node above */
			do end = path[--depth].end;
			while (i >= end);
			row = steps + path[depth].state * n_classes;
		}
		uint64_t node;
		__builtin_memcpy(&node, nodes + i, sizeof node);
		uint32_t token = (uint32_t)node, link = (uint32_t)(node >> 40), class = class_of[node >> 32 & 255], next = row[class];
		if (next == UNKNOWN) next = step_slow(path[depth].state, class); /* DEAD when the tables are full */
		if (next == DEAD) {
			i = link;
			continue;
		}
		if (token != TRIE_NONE) mask[token >> 5] |= 1u << (token & 31);
		if (++i < link && depth + 1 < 512) {
			path[++depth].end = end = link;
			path[depth].state = next;
			row = steps + next * n_classes;
		}
	}
	if (may_end(s))
		for (uint32_t w = 0; w < words; w++) mask[w] |= ends[w];
}

/* engine_mask returns the mask of the state, from the kept ones where it is there. */
static const uint32_t *engine_mask(void) {
	uint32_t oldest = 0;
	for (uint32_t i = 0; i < MASKS; i++) {
		if (mask_of[i] == state) return mask_age[i] = ++clock, masks + i * words;
		if (mask_age[i] < mask_age[oldest]) oldest = i;
	}
	walk(state, masks + oldest * words);
	if (full) {
		if (!make_room()) return 0;
		walk(state, masks + oldest * words);
		if (full) return 0;
	}
	mask_of[oldest] = state;
	mask_age[oldest] = ++clock;
	return masks + oldest * words;
}

/* engine_certain writes the bytes that must come next and returns how many. */
static uint32_t engine_certain(uint8_t *out, uint32_t most) {
	uint32_t s = state, n = 0;
	while (n < most && !may_end(s)) {
		uint32_t only = DEAD, byte = 0, ways = 0;
		for (uint32_t c = 0; c < n_classes && ways < 2; c++) {
			uint32_t next = step_by(s, class_byte[c]);
			if (full) return 0;
			if (next == DEAD) continue;
			ways += class_size[c];
			only = next, byte = class_byte[c];
		}
		if (ways != 1) break;
		out[n++] = (uint8_t)byte;
		s = only;
	}
	return n;
}

/* ---- The hooks that all constraints share ---------------------------------------- */

GG_HOOK(gg_plan) {
	uint8_t certain[256];
	uint32_t n = state == DEAD ? 0 : engine_certain(certain, sizeof certain), ids[128];
	if (full && !make_room()) return gg_fail("the constraint has too many states");
	/* Of what must come the last token is left to the model: it may hold more than that. */
	int32_t tokens = n > 1 ? gg_tok_encode(certain, n, 0, ids, 128) : 0;
	if (tokens > 1) {
		uint8_t back[256];
		int32_t same = gg_tok_decode(ids, (uint32_t)tokens - 1, back, sizeof back);
		if (same > 0 && (uint32_t)same <= n && gg_same(back, certain, (uint32_t)same)) {
			f->out_n = 0;
			for (int32_t i = 0; i + 1 < tokens; i++) gg_force(f, ids[i]);
			return GG_FORCE;
		}
	}
	const uint32_t *mask = engine_mask();
	if (!mask) return gg_fail("the constraint has too many states");
	__builtin_memcpy(gg_mask(f), mask, words * 4);
	return GG_MASK;
}

GG_HOOK(gg_accept) {
	uint8_t bytes[512];
	for (uint32_t t = 0; t < f->in_n; t++) {
		uint32_t id = gg_tokens_in(f)[t];
		past[n_past++ % PAST] = (uint16_t)state;
		if (ends[id >> 5] >> (id & 31) & 1) continue;
		int32_t n = gg_tok_bytes(id, bytes, sizeof bytes);
		for (int32_t i = 0; i < n; i++) {
			uint32_t next = step_by(state, bytes[i]);
			if (full && make_room()) next = step_by(state, bytes[i]);
			if (full || next == DEAD) return gg_fail("a token breaks the constraint");
			state = next;
		}
	}
	if (!(may_end(state) && states[state].n == 1)) return 0;
	f->stop_reason = GG_STOP_STOP;
	return GG_STOP;
}

GG_HOOK(gg_rollback) {
	for (uint32_t i = 0; i < f->backtrack && n_past; i++) state = past[--n_past % PAST];
	return 0;
}

/* opened is the answer of gg_open. */
static int32_t opened(void) {
	if (!fault) return 0;
	uint32_t n = 0;
	while (fault[n]) n++;
	gg_set_error(fault, n);
	return -1;
}

#endif
