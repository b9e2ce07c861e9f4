/* pii: replaces personal data in the output: mail addresses, telephone and card numbers,
 * bank accounts (IBAN), network addresses. Text is sent up to the last place where none
 * of them can be under way. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

enum { MOST = 8192, LONGEST = 320 };
enum kind { MAIL, PHONE, CARD, IBAN, IP, NONE };
static const char *const names[] = {"[email]", "[phone]", "[card]", "[iban]", "[ip]"};
static int on[NONE];
static char held[MOST];
static uint32_t n_held;

GG_OPEN {
	on[MAIL] = gg_number("/config/email", 1) != 0;
	on[PHONE] = gg_number("/config/phone", 1) != 0;
	on[CARD] = gg_number("/config/card", 1) != 0;
	on[IBAN] = gg_number("/config/iban", 1) != 0;
	on[IP] = gg_number("/config/ip", 1) != 0;
	return 0;
}

static int digit(char c) { return c >= '0' && c <= '9'; }
static int upper(char c) { return c >= 'A' && c <= 'Z'; }
static int alnum(char c) { return digit(c) || upper(c) || (c >= 'a' && c <= 'z'); }
static int local(char c) { return alnum(c) || c == '.' || c == '_' || c == '%' || c == '+' || c == '-'; }
static int between(char c) { return c == ' ' || c == '-' || c == '(' || c == ')' || c == '.' || c == '/'; }

/* Each of these returns the length of what begins at s, or 0. n bytes are known. */

static uint32_t mail(const char *s, uint32_t n) {
	uint32_t i = 0, last = 0;
	while (i < n && local(s[i])) i++;
	if (i == 0 || i == n || s[i] != '@') return 0;
	for (uint32_t label = ++i; i < n && (alnum(s[i]) || s[i] == '-' || s[i] == '.'); i++) {
		if (s[i] == '.') label = i + 1;
		else if (i - label >= 1 && label > 0 && s[label - 1] == '.') last = i + 1;
	}
	return last;
}

static uint32_t address(const char *s, uint32_t n) {
	uint32_t i = 0;
	for (int part = 0; part < 4; part++) {
		uint32_t v = 0, from = i;
		if (part && (i >= n || s[i++] != '.')) return 0;
		for (from = i; i < n && digit(s[i]) && i - from < 4; i++) v = v * 10 + (uint32_t)(s[i] - '0');
		if (i == from || v > 255) return 0;
	}
	return i < n && (digit(s[i]) || (s[i] == '.' && i + 1 < n && digit(s[i + 1]))) ? 0 : i;
}

/* account checks the remainder of ISO 13616. */
static uint32_t account(const char *s, uint32_t n) {
	char digits[40];
	uint32_t i = 0, k = 0, ok = 0;
	if (n < 15 || !upper(s[0]) || !upper(s[1]) || !digit(s[2]) || !digit(s[3])) return 0;
	for (; i < n && k < 34 && (digit(s[i]) || upper(s[i]) || (s[i] == ' ' && i > 3)); i++) {
		if (s[i] == ' ') continue;
		digits[k++] = s[i];
		if (k < 15) continue;
		uint32_t rest = 0;
		for (uint32_t j = 0; j < k; j++) {
			char c = digits[(j + 4) % k];
			rest = digit(c) ? (rest * 10 + (uint32_t)(c - '0')) % 97 : (rest * 100 + (uint32_t)(c - 'A') + 10) % 97;
		}
		if (rest == 1 && (i + 1 == n || !alnum(s[i + 1]))) ok = i + 1;
	}
	return ok;
}

/* number reads digits with signs between them, and tells a card by Luhn's sum. */
static uint32_t number(const char *s, uint32_t n, enum kind *k) {
	uint32_t i = s[0] == '+' || s[0] == '(', count = 0, end = 0, gaps = 0, sum = 0;
	char digits[24];
	for (; i < n && count < 20; i++) {
		if (digit(s[i])) digits[count++] = s[i], end = i + 1;
		else if (!between(s[i]) || i - end > 1) break;
		else gaps++;
	}
	for (uint32_t j = 0; j < count; j++) {
		uint32_t v = (uint32_t)(digits[count - 1 - j] - '0') << (j & 1);
		sum += v > 9 ? v - 9 : v;
	}
	*k = count >= 13 && count <= 19 && sum % 10 == 0 ? CARD : PHONE;
	if (*k == CARD) return end;
	return count >= 8 && count <= 15 && (s[0] == '+' || s[0] == '(' || (s[0] == '0' && gaps > 0) || (gaps >= 2 && count >= 10)) ? end : 0;
}

static uint32_t match(uint32_t at, uint32_t n, enum kind *k) {
	const char *s = held + at;
	uint32_t len;
	if (at > 0 && (alnum(held[at - 1]) || held[at - 1] == '@')) return 0; /* inside a word */
	n -= at;
	if (on[*k = MAIL] && (len = mail(s, n))) return len;
	if (on[*k = IBAN] && (len = account(s, n))) return len;
	int goes_on = at > 1 && between(s[-1]) && digit(s[-2]); /* the rest of a longer number */
	if (on[*k = IP] && !(goes_on && s[-1] == '.') && (len = address(s, n))) return len;
	if (goes_on || (!digit(s[0]) && s[0] != '+' && s[0] != '(')) return 0;
	return (len = number(s, n, k)) && on[*k] ? len : 0;
}

/* settled returns how much of the text no coming byte can change: up to the last word,
 * or before the run of digits, capitals and signs that it ends. */
static uint32_t settled(void) {
	uint32_t cut = n_held, words = 0;
	while (cut > 0 && held[cut - 1] != ' ' && held[cut - 1] != '\n') cut--;
	for (uint32_t i = cut; i > 0 && held[i - 1] != '\n' && n_held - i < LONGEST; i--) {
		char c = held[i - 1];
		if (digit(c)) cut = i - 1, words = 0;
		else if (upper(c) || c == '+' || (c == '(' && cut == i)) cut = cut == i ? i - 1 : cut;
		else if (!between(c) || ++words > 2) break;
	}
	return n_held - cut > LONGEST ? n_held : cut;
}

GG_HOOK(gg_text) {
	uint32_t n = f->in_n < MOST - n_held ? f->in_n : MOST - n_held, i = 0;
	char *out = (char *)gg_text_out(f), *o = out;
	__builtin_memcpy(held + n_held, gg_text_in(f), n);
	n_held += n;
	uint32_t end = f->flags & GG_LAST ? n_held : settled();
	while (i < end) {
		enum kind k;
		uint32_t len = match(i, n_held, &k);
		if (!len) {
			*o++ = held[i++];
			continue;
		}
		for (const char *c = names[k]; *c; c++) *o++ = *c;
		i += len;
	}
	__builtin_memmove(held, held + i, n_held -= i);
	f->out_n = (uint32_t)(o - out);
	return GG_TEXT;
}
