/* pattern.h: regular expressions as rules. The whole text must match. */
#ifndef PATTERN_H
#define PATTERN_H

#include "escape.h"

/* quoted patterns are inside a JSON string: what JSON escapes is written with its escape,
 * and control characters are left out. */
static int quoted;

static void pattern_class(const struct class *c) {
	if (!quoted) {
		add_class(c);
		return;
	}
	struct class plain = {.n = 0};
	uint32_t from = n_open, has_quote = 0, has_slash = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t lo = c->lo[i] < 0x20 ? 0x20 : c->lo[i];
		has_quote |= lo <= '"' && c->hi[i] >= '"';
		has_slash |= lo <= '\\' && c->hi[i] >= '\\';
		for (uint32_t at = lo, end; at <= c->hi[i]; at = end + 2) { /* without " and \ */
			end = at <= '"' && c->hi[i] >= '"' ? '"' - 1 : at <= '\\' && c->hi[i] >= '\\' ? '\\' - 1 : c->hi[i];
			if (at <= end) class_add(&plain, at, end);
		}
	}
	add_class(&plain);
	if (has_quote) add(ELEMENT(ALT, 0)), add_text("\\\"");
	if (has_slash) add(ELEMENT(ALT, 0)), add_text("\\\\");
	add(wrap(from));
}

static void pattern_character(uint32_t c) {
	struct class one = {.n = 0};
	class_add(&one, c, c);
	pattern_class(&one);
}

/* named adds \d, \w and \s, and their capitals, which are the others. */
static int named(struct class *c, char letter) {
	struct class one = {.n = 0};
	switch (letter | 32) {
	case 'd': class_add(&one, '0', '9'); break;
	case 'w': class_add(&one, '0', '9'), class_add(&one, 'A', 'Z'), class_add(&one, 'a', 'z'), class_add(&one, '_', '_'); break;
	case 's': class_add(&one, '\t', '\r'), class_add(&one, ' ', ' '); break;
	default: return 0;
	}
	if (letter < 'a') class_invert(&one);
	for (uint32_t i = 0; i < one.n; i++) class_add(c, one.lo[i], one.hi[i]);
	return 1;
}

static void pattern_set(void) {
	struct class c = {.n = 0};
	int inverted = take('^'), first = 1;
	for (; !fault && peek() && (peek() != ']' || first); first = 0) {
		if (peek() == '\\' && in + 1 < in_end && named(&c, in[1])) {
			in += 2;
			continue;
		}
		if (peek() == '[' && in + 1 < in_end && in[1] == ':') set_fault("classes by name are not supported");
		uint32_t lo = take('\\') ? escaped() : character(), hi = lo;
		if (peek() == '-' && in + 1 < in_end && in[1] != ']') in++, hi = take('\\') ? escaped() : character();
		if (lo > hi) set_fault("a range ends before it begins");
		else class_add(&c, lo, hi);
	}
	if (!take(']')) set_fault("a class is not closed");
	if (inverted) class_invert(&c);
	pattern_class(&c);
}

static void pattern_alternatives(int depth);

static void pattern_sequence(int depth) {
	while (!fault && peek() && peek() != '|' && peek() != ')') {
		uint32_t from = n_open;
		char c = *in++;
		struct class set = {.n = 0};
		switch (c) {
		case '(':
			if (take('?') && !take(':')) set_fault("groups with ? other than (?: are not supported");
			if (depth > 100) set_fault("groups lie too deep");
			pattern_alternatives(depth + 1);
			add(wrap(from));
			if (!take(')')) set_fault("a group is not closed");
			break;
		case '[': pattern_set(); break;
		case '.':
			class_add(&set, 0, '\n' - 1), class_add(&set, '\n' + 1, 0x10FFFF);
			pattern_class(&set);
			break;
		case '\\':
			if (named(&set, peek())) in++, pattern_class(&set);
			else if ((peek() | 32) == 'b' || (peek() | 32) == 'p' || (peek() >= '0' && peek() <= '9')) set_fault("\\b, \\p and back references are not supported");
			else pattern_character(escaped());
			break;
		case '*': case '+': case '?': set_fault("nothing to repeat"); break;
		case '^': case '$': set_fault("^ and $ inside a pattern are not supported"); break;
		default: in--; pattern_character(character());
		}
		c = peek();
		if (c == '*' || c == '+' || c == '?') in++, repeat(from, c == '+', c == '?' ? 1 : UNBOUNDED);
		else if (c == '{') in++, bounds(from);
		else continue;
		take('?'); /* lazy or not: the whole text matches */
	}
}

static void pattern_alternatives(int depth) {
	pattern_sequence(depth);
	while (take('|') && !fault) {
		add(ELEMENT(ALT, 0));
		pattern_sequence(depth);
	}
}

/* pattern adds the rules of an expression. In a schema one without ^ and $ may match
 * anywhere; here open says whether that is so. */
static void pattern(const char *text, uint32_t n, int open) {
	struct class any = {.n = 0};
	in = text, in_end = text + n;
	class_add(&any, 0, 0x10FFFF);
	int begins = take('^'), ends_too = 0;
	uint32_t slashes = 0;
	while (slashes + 1 < n && in_end[-2 - (int)slashes] == '\\') slashes++;
	if (n && in_end[-1] == '$' && slashes % 2 == 0) in_end--, ends_too = 1;
	uint32_t from = n_open;
	if (open && !begins) pattern_class(&any), repeat(from, 0, UNBOUNDED);
	from = n_open;
	pattern_alternatives(0);
	add(wrap(from));
	from = n_open;
	if (open && !ends_too) pattern_class(&any), repeat(from, 0, UNBOUNDED);
	if (in < in_end) set_fault("a parenthesis too many");
}

#endif
