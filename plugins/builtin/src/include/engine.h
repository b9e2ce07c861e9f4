/* engine.h: runs a grammar of rules.h beside a text.
 *
 * A state is a set of stacks; a stack is a place in the grammar with what follows when its
 * rule is over. Both are kept once each, and so are the steps from state to state by a
 * byte: what a grammar needs in use becomes a table, and a mask is a walk over the
 * vocabulary's tree with one look-up a node. Masks are kept by state.
 *
 * Inside of a text nearly every token is allowed, and a walk would see the whole tree. But
 * there characters lead back to the state that they came from, or along a chain of its like:
 * by their spans (spans.h) the tokens of such characters are allowed at once, and subtrees
 * that have no others are passed over. */
#ifndef ENGINE_H
#define ENGINE_H

#include "rules.h"
#include "spans.h"

enum {
	STACKS = 1 << 15, STATES = 4096, PARTS = 1 << 16, MEMBERS = 512, DEPTH = 400,
	MASKS = 24, PAST = 128, UNKNOWN = 0xFFFF, DEAD = 0,
	DEEPEST = 512, /* bytes of a token that a walk follows */
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
static uint32_t *ends, *masks; /* ends: tokens that end a text; masks: [MASKS][span_words] */
static uint32_t mask_of[MASKS], mask_age[MASKS], clock;
static int full;  /* a table is full, or a stack too deep */
static int plain; /* walks pass over nothing, for that may take states that there is no room for */

/* What a state does with runs of characters: those of the kinds in set lead to target. */
static struct run {
	uint32_t set;    /* of bits in spans.h; NO_RUN: not known */
	uint16_t target; /* the state itself, or the next of a chain */
	uint16_t length; /* 0: there are none; 1: one; ENDLESS: as many as spans count */
} runs[STATES];
enum { NO_RUN = 0xFFFFFFFFu, ENDLESS = 254, CHAIN = 32 };

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
	gg_work(n_members * n_members * 4 + n_seen * 8);
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
	runs[n_states].set = NO_RUN;
	return state_hash[h] = n_states++;
}

static int may_end(uint32_t s) { return s != DEAD && parts[states[s].from] == 0; }

/* The latest steps out of one state: bytes that the same of its stacks take lead to the same
 * state, and most classes of bytes are taken by the same ones. */
static struct {
	uint64_t taken;
	uint32_t next;
} latest[8];
static uint32_t latest_of, n_latest; /* of DEAD: none */

__attribute__((noinline)) static uint32_t step_slow(uint32_t s, uint32_t class) {
	uint64_t taken = 0;
	uint32_t n = states[s].n, next;
	gg_work(32 * n + 512);
	if (s != latest_of) latest_of = s, n_latest = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t top = parts[states[s].from + i];
		if (top && set_has(VALUE(elements[stacks[top].at]), class_byte[class])) taken |= 1ull << (i & 63);
	}
	if (n <= 64)
		for (uint32_t i = 0; i < n_latest && i < 8; i++)
			if (latest[i].taken == taken) return steps[s * n_classes + class] = (uint16_t)latest[i].next;
	n_members = n_seen = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t top = parts[states[s].from + i];
		if (n <= 64 ? taken >> i & 1 : top && set_has(VALUE(elements[stacks[top].at]), class_byte[class])) follow(stacks[top].at + 1, stacks[top].below, 0);
	}
	next = intern_state();
	if (full) return next;
	latest[n_latest % 8].taken = taken, latest[n_latest++ % 8].next = next;
	return steps[s * n_classes + class] = (uint16_t)next;
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
	latest_of = DEAD;
	__builtin_memset(steps, 0, n_classes * 2); /* DEAD stays dead */
}

static uint32_t rebuilt(const struct stack *old, uint32_t i, int depth) {
	if (i == 0 || depth > 4 * DEPTH) return 0;
	gg_work(128);
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

/* make_classes puts together the bytes that no set of the grammar tells apart: each set
 * splits the classes of which it has some bytes and not others. */
static void make_classes(void) {
	n_classes = 1;
	for (uint32_t i = 0; i < n_sets; i++) {
		uint8_t with[256] = {0}, without[256] = {0}, to[256];
		gg_work(256 * 64);
		for (uint32_t b = 0; b < 256; b++) *(set_has(i, b) ? with + class_of[b] : without + class_of[b]) = 1;
		for (uint32_t c = 0, n = n_classes; c < n; c++) to[c] = with[c] && without[c] ? (uint8_t)n_classes++ : (uint8_t)c;
		for (uint32_t b = 0; b < 256; b++)
			if (set_has(i, b)) class_of[b] = to[class_of[b]];
	}
	for (uint32_t b = 256; b-- > 0;) {
		class_byte[class_of[b]] = (uint8_t)b;
		class_size[class_of[b]]++;
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
	scratch = gg_malloc(sizeof stacks + sizeof parts, 16);
	if (!steps || !scratch || !spans_load(words) || !(ends = gg_malloc(span_words * 4, 16)) || !(masks = gg_malloc(MASKS * span_words * 4, 16))) {
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

/* leads tells whether every character that goes on with these bytes ends in a state: one of
 * lo to hi, the next from a to b, and more behind it. */
static int leads(uint32_t s, uint32_t lo, uint32_t hi, uint32_t a, uint32_t b, uint32_t more, uint32_t to) {
	for (uint32_t c = lo, last = UNKNOWN; c <= hi; c++) {
		uint32_t class = class_of[c];
		if (class == last) continue;
		uint32_t next = step_by(s, (uint8_t)c);
		if (next == DEAD || (more ? !leads(next, a, b, 0x80, 0xBF, more - 1, to) : next != to)) return 0;
		last = class;
	}
	return 1;
}

/* all_others tells whether all characters above 0x7F lead to a state. */
static int all_others(uint32_t s, uint32_t to) {
	if (step_by(s, 0xE4) == DEAD) return 0;
	gg_work(20000);
	return leads(s, 0xC2, 0xDF, 0x80, 0xBF, 1, to) && leads(s, 0xE0, 0xE0, 0xA0, 0xBF, 2, to) && leads(s, 0xE1, 0xEC, 0x80, 0xBF, 2, to) &&
	       leads(s, 0xED, 0xED, 0x80, 0x9F, 2, to) && leads(s, 0xEE, 0xEF, 0x80, 0xBF, 2, to) && leads(s, 0xF0, 0xF0, 0x90, 0xBF, 3, to) &&
	       leads(s, 0xF1, 0xF3, 0x80, 0xBF, 3, to) && leads(s, 0xF4, 0xF4, 0x80, 0x8F, 3, to);
}

/* one_run finds a state's target, the state itself or where most bytes lead, and the kinds
 * of characters that all lead there. */
static void one_run(uint32_t s) {
	uint32_t best = DEAD, most = 0, others = 0;
	gg_work(n_classes * n_classes * 8 + 128 * 24);
	for (uint32_t c = 0; c < n_classes && best != s; c++) {
		uint32_t next = class_byte[c] < 0x80 ? step_by(s, class_byte[c]) : DEAD, bytes = 0;
		if (next == DEAD) continue;
		for (uint32_t k = c; k < n_classes; k++)
			if (class_byte[k] < 0x80 && steps[s * n_classes + k] == next) bytes += class_size[k];
		if (next == s || bytes > most) best = next, most = bytes;
	}
	struct run *r = &runs[s];
	r->set = 0, r->length = 0, r->target = (uint16_t)best;
	if (best == DEAD) return;
	for (uint32_t b = 0; b < 0x80; b++) {
		if (step_by(s, (uint8_t)b) == best) r->set |= span_bit[b];
		else others |= span_bit[b];
	}
	r->set &= ~others; /* some of the kind do not lead there */
	if (r->set && all_others(s, best)) r->set |= SPAN_HIGH;
	if (r->set) r->length = best == s ? ENDLESS : 1;
}

/* run_length is how many characters of a state's run follow each other at least, as far as
 * that is looked for; 0: it has no run. */
static uint32_t run_length(uint32_t s) {
	uint32_t n = 0, set = NO_RUN;
	do {
		if (runs[s].set == NO_RUN) one_run(s);
		if (full) return runs[s].set = NO_RUN, 0;
		if (n && runs[s].set != set) return n;
		if (runs[s].length != 1) return n ? n : runs[s].length;
		set = runs[s].set, s = runs[s].target;
	} while (++n < CHAIN);
	return n;
}

/* mark allows all tokens of a subtree. */
__attribute__((noinline)) static void mark(uint32_t from, uint32_t to, uint32_t *mask) {
	for (uint32_t i = from; i < to; i++) {
		uint32_t token = trie[i].token;
		if (token != TRIE_NONE) mask[token >> 5] |= 1u << (token & 31);
	}
}

/* level is a node of the path that a walk is on. Of what is below it, subtrees without the
 * bits of bar and of at most left characters are allowed whole; marked: their tokens are in
 * the mask already. */
struct level {
	uint32_t end, state, bar, left, marked;
};

/* enter is the level below a node whose character the run above it does not hold. */
__attribute__((noinline)) static void enter(struct level *l, uint32_t size) {
	l->bar = SPAN_BITS, l->left = 0, l->marked = 0;
	if (plain || size < 64) return;
	uint32_t length = run_length(l->state);
	if (length > 1) l->bar = SPAN_BITS & ~runs[l->state].set, l->left = length;
}

/* walk marks the tokens that a state allows. Fuel is charged by what stands in the loop,
 * so what is rare is called. */
static void walk(uint32_t s, uint32_t *mask) {
	static struct level path[DEEPEST];
	const struct trie_node *nodes = trie;
	struct level *l = path;
	uint32_t i = 0, rest = 0;
	l->end = trie_n, l->state = s;
	enter(l, trie_n);
	if (l->left) {
		span_mask(mask, l->bar, l->left);
		l->marked = 1;
	} else {
		__builtin_memset(mask, 0, span_words * 4);
	}
	while (i < trie_n) {
		while (i >= l->end) l--; /* back to the node above */
		const uint16_t *row = steps + l->state * n_classes;
		uint32_t end = l->end, bar = l->bar, left = l->left, marked = l->marked, token, link, byte, next = DEAD;
		do { /* over nodes that need no look at what is below them */
			uint64_t node;
			__builtin_memcpy(&node, nodes + i, sizeof node);
			uint32_t span = nodes[i].span;
			token = (uint32_t)node, link = (uint32_t)(node >> 40), byte = node >> 32 & 255;
			if ((span & bar) || span >> SPAN_SHIFT > left) {
				if ((next = row[class_of[byte]])) break;
			} else if (!marked) {
				mark(i, link, mask);
			}
			i = link;
		} while (i < end);
		if (i >= end) continue;
		if (next == UNKNOWN && (next = step_slow(l->state, class_of[byte])) == DEAD) { /* also where the tables are full */
			i = link;
			continue;
		}
		if (token != TRIE_NONE) mask[token >> 5] |= 1u << (token & 31);
		if (++i < link && l + 1 < path + DEEPEST) {
			if (!(++rest & 255)) gg_rest(); /* of their children it looked at fewer than 65,536 */
			(++l)->end = link, l->state = next;
			if (span_bit[byte] & bar) enter(l, link - i);
			else l->bar = bar, l->left = left ? left - 1 : 0, l->marked = marked;
		}
	}
	if (may_end(s))
		for (uint32_t w = 0; w < words; w++) mask[w] |= ends[w];
}

/* engine_mask returns the mask of the state, from the kept ones where it is there. */
static const uint32_t *engine_mask(void) {
	uint32_t oldest = 0;
	for (uint32_t i = 0; i < MASKS; i++) {
		if (mask_of[i] == state) return mask_age[i] = ++clock, masks + i * span_words;
		if (mask_age[i] < mask_age[oldest]) oldest = i;
	}
	/* A walk that fills a table is for nothing, so there is room before it where that helps. */
	if (n_states > STATES - 1024 || n_stacks > STACKS - 8192)
		if (!make_room()) return 0;
	walk(state, masks + oldest * span_words);
	for (int tries = 0; full; tries++) {
		if (tries == 2 || !make_room()) return plain = 0, (const uint32_t *)0;
		plain = tries;
		walk(state, masks + oldest * span_words);
	}
	plain = 0;
	mask_of[oldest] = state;
	mask_age[oldest] = ++clock;
	return masks + oldest * span_words;
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
