/* grammar: the text follows a grammar in GBNF, the notation of llama.cpp. */
#include "engine.h"
#include "escape.h"

GG_PLUGIN("manifest.json")

enum { NAMES = 4096 };
static struct {
	const char *text;
	uint32_t n, rule;
} names[NAMES];
static uint32_t n_names;

static int word(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' || c == '_'; }

/* space skips blanks and comments, and line ends where lines says so. */
static void space(int lines) {
	for (;; in++) {
		if (peek() == '#')
			while (peek() && peek() != '\n' && peek() != '\r') in++;
		char c = peek();
		if (!(c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))) return;
	}
}

static uint32_t name(void) {
	const char *from = in;
	while (word(peek())) in++;
	uint32_t n = (uint32_t)(in - from);
	if (!n) set_fault("a name is missing");
	for (uint32_t i = 0; i < n_names; i++)
		if (names[i].n == n && gg_same(names[i].text, from, n)) return names[i].rule;
	if (n_names == NAMES) return set_fault("too many rules"), 0;
	names[n_names].text = from;
	names[n_names].n = n;
	return names[n_names++].rule = new_rule();
}

static uint32_t one(void) { return take('\\') ? escaped() : character(); }

__attribute__((noinline)) static void any(void) {
	struct class all = {.n = 0};
	class_add(&all, 0, 0x10FFFF);
	add_class(&all);
}

__attribute__((noinline)) static void class(void) {
	struct class c = {.n = 0};
	int inverted = take('^');
	while (!fault && peek() && peek() != ']') {
		uint32_t lo = one(), hi = lo;
		if (peek() == '-' && in + 1 < in_end && in[1] != ']') in++, hi = one();
		if (lo <= hi) class_add(&c, lo, hi);
	}
	if (!take(']')) set_fault("a class is not closed");
	if (inverted) class_invert(&c);
	add_class(&c);
}

static void alternatives(int nested);

static void sequence(int nested) {
	uint32_t last = n_open;
	while (!fault) {
		char c = peek();
		uint32_t from = n_open;
		if (take('"')) {
			while (peek() && peek() != '"' && !fault) add_character(one());
			if (!take('"')) set_fault("a text is not closed");
		} else if (take('[')) {
			class();
		} else if (take('.')) {
			any();
		} else if (take('(')) {
			uint32_t rule = new_rule(), mark = n_open;
			space(1);
			alternatives(1);
			if (!take(')')) set_fault("a parenthesis is not closed");
			close_rule(rule, mark);
			add(ELEMENT(REF, rule));
		} else if (word(c)) {
			add(ELEMENT(REF, name()));
		} else if (c == '<') {
			set_fault("tokens in a grammar are not supported");
		} else if (c == '*' || c == '+' || c == '?' || c == '{') {
			in++;
			if (last == n_open) set_fault("nothing to repeat");
			else if (c == '{') space(0), bounds(last);
			else repeat(last, c == '+', c == '?' ? 1 : UNBOUNDED);
			space(nested);
			continue;
		} else {
			return;
		}
		last = from;
		space(nested);
	}
}

static void alternatives(int nested) {
	sequence(nested);
	while (take('|') && !fault) {
		space(1);
		add(ELEMENT(ALT, 0));
		sequence(nested);
	}
}

GG_OPEN {
	static char text[128 << 10];
	int32_t n = gg_string("/config/gbnf", text, sizeof text);
	if (n <= 0) return gg_fail("grammar: the grammar is empty or above 128 KiB");
	in = text, in_end = text + n;
	for (space(1); in < in_end && !fault; space(1)) {
		uint32_t rule = name(), from = n_open;
		space(0);
		if (!(take(':') && take(':') && take('='))) set_fault("::= is missing behind a name");
		space(1);
		alternatives(0);
		close_rule(rule, from);
		if (peek() && peek() != '\n' && peek() != '\r') set_fault("a line goes on with what is no part of a rule");
	}
	for (uint32_t i = 0; i < n_names && !fault; i++)
		if (names[i].n == 4 && gg_same(names[i].text, "root", 4)) {
			engine_open(names[i].rule);
			return opened();
		}
	set_fault("there is no rule root");
	return opened();
}
