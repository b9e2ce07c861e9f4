/* rules.h: building a grammar over bytes.
 *
 * A rule is a run of elements: SET (one byte of a set), REF (another rule), ALT between
 * alternatives, END. Characters above 0x7F become runs of sets by UTF-8, so a token may
 * end in the middle of one. */
#ifndef RULES_H
#define RULES_H

#include "ganglion.h"

enum { END = 0, ALT = 1, SET = 2, REF = 3 };
enum { ELEMENTS = 65536, OPEN_ELEMENTS = 32768, RULES = 16384, SETS = 1024 };

#define ELEMENT(kind, value) ((uint32_t)(kind) << 24 | (uint32_t)(value))
#define KIND(e) ((e) >> 24)
#define VALUE(e) ((e)&0xFFFFFF)

static uint32_t elements[ELEMENTS], n_elements, rule_at[RULES], n_rules;
static uint32_t open_elements[OPEN_ELEMENTS], n_open; /* of rules under construction */
static struct byte_set {
	uint64_t bits[4];
} sets[SETS];
static uint32_t n_sets;
static uint16_t set_hash[4 * SETS]; /* places in sets, counted from 1 */
static const char *fault; /* the first one; rules are of no use then */

static void set_fault(const char *text) {
	if (!fault) fault = text;
}

static int set_has(uint32_t set, uint32_t byte) { return sets[set].bits[byte >> 6] >> (byte & 63) & 1; }

static uint32_t intern_set(const struct byte_set *s) {
	uint64_t x = s->bits[0] * 0x9e3779b97f4a7c15u ^ s->bits[1] * 0xc2b2ae3d27d4eb4fu ^ s->bits[2] * 0x165667b19e3779f9u ^ s->bits[3];
	uint32_t h = (uint32_t)(x * 0x9e3779b97f4a7c15u >> 52);
	for (; set_hash[h]; h = (h + 1) % (4 * SETS))
		if (gg_same(&sets[set_hash[h] - 1], s, sizeof *s)) return set_hash[h] - 1u;
	if (n_sets == SETS) return set_fault("too many different characters"), 0;
	sets[n_sets] = *s;
	set_hash[h] = (uint16_t)++n_sets;
	return n_sets - 1;
}

static uint32_t range_set(uint32_t lo, uint32_t hi) {
	struct byte_set s = {{0, 0, 0, 0}};
	for (uint32_t b = lo; b <= hi; b++) s.bits[b >> 6] |= 1ull << (b & 63);
	return intern_set(&s);
}

static void add(uint32_t element) {
	gg_work(1024); /* looking for its set included */
	if (n_open == OPEN_ELEMENTS) set_fault("the grammar is too large");
	else open_elements[n_open++] = element;
}

static void add_byte(uint32_t b) { add(ELEMENT(SET, range_set(b, b))); }
static void add_bytes(const char *s, uint32_t n) {
	for (uint32_t i = 0; i < n; i++) add_byte((uint8_t)s[i]);
}
#define add_text(text) add_bytes("" text, sizeof(text) - 1)

/* new_rule reserves a rule that may be referred to before it is known. */
static uint32_t new_rule(void) {
	if (n_rules == RULES) return set_fault("the grammar has too many rules"), 0;
	rule_at[n_rules] = ELEMENTS;
	return n_rules++;
}

/* close_rule makes a rule of what was added since from. */
static void close_rule(uint32_t rule, uint32_t from) {
	if (n_elements + n_open - from + 1 > ELEMENTS) {
		set_fault("the grammar is too large");
	} else {
		rule_at[rule] = n_elements;
		for (uint32_t i = from; i < n_open; i++) elements[n_elements++] = open_elements[i];
		elements[n_elements++] = ELEMENT(END, 0);
	}
	n_open = from;
}

static uint32_t make_rule(uint32_t from) {
	uint32_t r = new_rule();
	close_rule(r, from);
	return r;
}

/* wrap makes what was added since from one element. */
static uint32_t wrap(uint32_t from) {
	if (n_open == from + 1 && KIND(open_elements[from]) != ALT) return open_elements[--n_open];
	return ELEMENT(REF, make_rule(from));
}

enum { UNBOUNDED = 0x7FFFFFFF, MOST_REPEATS = 4000 };

/* repeat turns what was added since from into least to most of it. */
static void repeat(uint32_t from, uint32_t least, uint32_t most) {
	uint32_t item = wrap(from), rule, mark;
	if (least > most) set_fault("a repetition ends before it begins");
	if (least > MOST_REPEATS || (most != UNBOUNDED && most > MOST_REPEATS)) set_fault("a repetition of more than 4000");
	if (fault) return;
	uint32_t rest = 0, has_rest = 0;
	if (most == UNBOUNDED) { /* rest ::= item rest | */
		rule = new_rule();
		mark = n_open;
		add(item), add(ELEMENT(REF, rule)), add(ELEMENT(ALT, 0));
		close_rule(rule, mark);
		rest = rule, has_rest = 1;
	} else {
		for (uint32_t i = least; i < most; i++) { /* rest ::= item rest' | */
			mark = n_open;
			add(item);
			if (has_rest) add(ELEMENT(REF, rest));
			add(ELEMENT(ALT, 0));
			rest = make_rule(mark), has_rest = 1;
		}
	}
	for (uint32_t i = 0; i < least; i++) add(item);
	if (has_rest) add(ELEMENT(REF, rest));
}

/* utf8 writes a character and returns its bytes. */
static uint32_t utf8(uint32_t c, char *out) {
	uint32_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (uint32_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 63));
	out[0] = (char)(n == 1 ? c : (0xF00u >> n & 0xFF) | c);
	return n;
}

/* A set of characters as ranges, sorted and joined by class_add. */
enum { RANGES = 128 };
struct class {
	uint32_t lo[RANGES], hi[RANGES], n;
};

static void class_add(struct class *c, uint32_t lo, uint32_t hi) {
	uint32_t i = 0, j;
	while (i < c->n && c->hi[i] + 1 < lo) i++;
	for (j = i; j < c->n && c->lo[j] <= hi + 1; j++) {
		if (c->lo[j] < lo) lo = c->lo[j];
		if (c->hi[j] > hi) hi = c->hi[j];
	}
	if (c->n - (j - i) + 1 > RANGES) {
		set_fault("a class of too many characters");
		return;
	}
	__builtin_memmove(c->lo + i + 1, c->lo + j, (c->n - j) * 4);
	__builtin_memmove(c->hi + i + 1, c->hi + j, (c->n - j) * 4);
	c->n = c->n - (j - i) + 1;
	c->lo[i] = lo, c->hi[i] = hi;
}

__attribute__((noinline)) static void class_invert(struct class *c) {
	struct class out = {.n = 0};
	uint32_t next = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->lo[i] > next) class_add(&out, next, c->lo[i] - 1);
		next = c->hi[i] + 1;
	}
	if (next <= 0x10FFFF) class_add(&out, next, 0x10FFFF);
	*c = out;
}

/* add_range adds alternatives for characters of more than one byte: the range is cut
 * until each part is a product of byte ranges. */
static void add_range(uint32_t lo, uint32_t hi) {
	static const uint32_t cuts[] = {0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF};
	for (int i = 0; i < 5; i++)
		if (lo <= cuts[i] && cuts[i] < hi) {
			add_range(lo, cuts[i]);
			add_range(cuts[i] + 1, hi);
			return;
		}
	if (hi < 0x80 || (lo >= 0xD800 && hi <= 0xDFFF)) return; /* single bytes are the set's; surrogates are none */
	for (int shift = 6; shift <= 18; shift += 6) {
		uint32_t low = (1u << shift) - 1;
		if ((lo & ~low) == (hi & ~low)) continue;
		if (lo & low) {
			add_range(lo, lo | low);
			add_range((lo | low) + 1, hi);
			return;
		}
		if ((hi & low) != low) {
			add_range(lo, (hi & ~low) - 1);
			add_range(hi & ~low, hi);
			return;
		}
	}
	char first[4], last[4];
	uint32_t n = utf8(lo, first);
	utf8(hi, last);
	add(ELEMENT(ALT, 0));
	for (uint32_t i = 0; i < n; i++) add(ELEMENT(SET, range_set((uint8_t)first[i], (uint8_t)last[i])));
}

static void add_class(const struct class *c) {
	struct byte_set single = {{0, 0, 0, 0}};
	uint32_t from = n_open;
	gg_work(8192 + 4096 * c->n);
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t b = c->lo[i]; b <= c->hi[i] && b < 0x80; b++) single.bits[b >> 6] |= 1ull << (b & 63);
	int has_single = single.bits[0] || single.bits[1];
	if (has_single || c->n == 0) add(ELEMENT(SET, intern_set(&single)));
	uint32_t begin = n_open;
	for (uint32_t i = 0; i < c->n; i++) add_range(c->lo[i], c->hi[i]);
	if (begin == from && n_open > begin) { /* no set before the first ALT */
		__builtin_memmove(open_elements + from, open_elements + from + 1, (n_open - from - 1) * 4);
		n_open--;
	}
	add(wrap(from));
}

static void add_character(uint32_t c) {
	char b[4];
	add_bytes(b, utf8(c, b));
}

#endif
