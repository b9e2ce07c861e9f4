/* escape.h: characters of patterns and grammars. */
#ifndef ESCAPE_H
#define ESCAPE_H

#include "rules.h"

/* A text being read; at the end, peek is 0. */
static const char *in, *in_end;

static char peek(void) { return in < in_end ? *in : 0; }
static int take(char c) { return peek() == c && c ? (in++, 1) : 0; }

/* character reads one character of UTF-8. */
static uint32_t character(void) {
	uint8_t b = (uint8_t)*in++;
	uint32_t more = b < 0x80 ? 0 : b < 0xE0 ? 1 : b < 0xF0 ? 2 : 3, c = b < 0x80 ? b : b & (0x3F >> more);
	for (; more && in < in_end; more--) c = c << 6 | ((uint8_t)*in++ & 0x3F);
	return c;
}

/* hex reads n digits. */
static uint32_t hex(int n) {
	uint32_t v = 0;
	for (; n > 0; n--) {
		char c = peek();
		uint32_t d = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : (c | 32) >= 'a' && (c | 32) <= 'f' ? (uint32_t)((c | 32) - 'a' + 10) : 16;
		if (d == 16) return set_fault("an escape needs more digits"), 0;
		v = v << 4 | d;
		in++;
	}
	return v;
}

/* escaped reads what stands behind a backslash. */
static uint32_t escaped(void) {
	char c = peek();
	if (!c) return set_fault("a backslash at the end"), 0;
	switch (c) {
	case 'n': return in++, '\n';
	case 'r': return in++, '\r';
	case 't': return in++, '\t';
	case 'f': return in++, '\f';
	case 'v': return in++, '\v';
	case 'x': return in++, hex(2);
	case 'u': return in++, hex(4);
	case 'U': return in++, hex(8);
	}
	return character();
}

static uint32_t decimal(void) {
	uint32_t v = 0;
	if (!(peek() >= '0' && peek() <= '9')) set_fault("a number is missing");
	for (; peek() >= '0' && peek() <= '9'; in++)
		if (v < 100000) v = v * 10 + (uint32_t)(*in - '0');
	return v;
}

/* bounds reads {m}, {m,} and {m,n} behind the brace and repeats what was added since. */
static void bounds(uint32_t from) {
	uint32_t least = peek() == ',' ? 0 : decimal(), most = least;
	if (take(',')) most = peek() == '}' ? UNBOUNDED : decimal();
	if (!take('}')) set_fault("a brace is not closed");
	repeat(from, least, most);
}

#endif
