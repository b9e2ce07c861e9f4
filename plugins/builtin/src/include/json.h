/* json.h: reading a JSON text. All but json_valid expect one that is well formed. */
#ifndef JSON_H
#define JSON_H

#include "rules.h"

typedef struct json {
	const char *at, *end; /* the value's text; at is 0 for none */
} json;

static json json_trim(json v) {
	while (v.at < v.end && (uint8_t)*v.at <= ' ') v.at++;
	return v;
}

/* json_after returns the place behind the value that begins at v. */
static const char *json_after(json v) {
	const char *p = v.at;
	int depth = 0, quoted = 0;
	for (; p < v.end; p++) {
		if (quoted) {
			if (*p == '\\') p++;
			else if (*p == '"' && (quoted = 0, depth == 0)) return p + 1;
			continue;
		}
		if (*p == '"') quoted = 1;
		else if (*p == '{' || *p == '[') depth++;
		else if (*p == '}' || *p == ']') {
			if (depth == 0) return p;
			if (--depth == 0) return p + 1;
		} else if ((*p == ',' || *p == ':' || (uint8_t)*p <= ' ') && depth == 0) {
			return p;
		}
	}
	return p;
}

/* json_next takes an element, or a member with its quoted name, off *rest, which starts
 * as the whole array or object. 0 at the end. */
static int json_next(json *rest, json *name, json *value) {
	const char *from = rest->at;
	json r = json_trim(*rest);
	int object = *r.at == '{' || (name && *r.at == ',');
	if (r.at >= r.end || *r.at == ']' || *r.at == '}') return 0;
	r.at++;
	r = json_trim(r);
	if (r.at >= r.end || *r.at == ']' || *r.at == '}') return 0;
	*value = (json){r.at, json_after(r)};
	r.at = value->end;
	r = json_trim(r);
	if (object && name) {
		*name = *value;
		r.at++; /* the colon */
		r = json_trim(r);
		*value = (json){r.at, json_after(r)};
		r.at = value->end;
	}
	*rest = r;
	gg_work(16 * (uint32_t)(r.at - from));
	return 1;
}

static int json_is(json name, const char *text, uint32_t n) {
	return name.end - name.at == (ptrdiff_t)n + 2 && gg_same(name.at + 1, text, n);
}

static json json_member(json object, const char *text, uint32_t n) {
	json name, v;
	if (object.at && *object.at == '{')
		while (json_next(&object, &name, &v))
			if (json_is(name, text, n)) return v;
	return (json){0, 0};
}
#define json_get(object, name) json_member(object, "" name, sizeof(name) - 1)

/* json_valid goes over a value and returns the place behind it; 0 where it is none. */
static const char *json_valid(const char *p, const char *end, int depth) {
	while (p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r'))) p++;
	if (p >= end || depth > 64) return 0;
	if (*p == '{' || *p == '[') {
		char close = *p == '{' ? '}' : ']';
		const char *first = p++;
		for (;;) {
			while (p < end && (uint8_t)*p <= ' ') p++;
			if (p < end && *p == close && *first != ',') return p + 1;
			if (close == '}') {
				if (p >= end || *p != '"' || !(p = json_valid(p, end, depth + 1))) return 0;
				while (p < end && (uint8_t)*p <= ' ') p++;
				if (p >= end || *p++ != ':') return 0;
			}
			if (!(p = json_valid(p, end, depth + 1))) return 0;
			while (p < end && (uint8_t)*p <= ' ') p++;
			if (p >= end || (*p != ',' && *p != close)) return 0;
			if (*p == close) return p + 1;
			first = p++;
		}
	}
	if (*p == '"') {
		for (p++; p < end && *p != '"'; p++) {
			if ((uint8_t)*p < ' ') return 0;
			if (*p != '\\') continue;
			if (++p >= end) return 0;
			for (int i = 1; *p == 'u' && i <= 4; i++)
				if (p + i >= end || !((p[i] >= '0' && p[i] <= '9') || ((p[i] | 32) >= 'a' && (p[i] | 32) <= 'f'))) return 0;
		}
		return p < end ? p + 1 : 0;
	}
	const char *from = p;
	while (p < end && ((*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'z') || *p == '-' || *p == '+' || *p == '.')) p++;
	uint32_t n = (uint32_t)(p - from);
	int named = (n == 4 && (gg_same(from, "true", 4) || gg_same(from, "null", 4))) || (n == 5 && gg_same(from, "false", 5));
	return named || (n && (*from == '-' || (*from >= '0' && *from <= '9'))) ? p : 0;
}

static uint32_t json_count(json v) {
	json name, x;
	uint32_t n = 0;
	int object = v.at && *v.at == '{';
	if (v.at && (object || *v.at == '['))
		while (json_next(&v, object ? &name : 0, &x)) n++;
	return n;
}

/* json_whole reads a whole number; other where there is none. */
static int64_t json_whole(json v, int64_t other) {
	if (!v.at) return other;
	const char *p = v.at;
	int64_t n = 0, negative = *p == '-';
	for (p += negative; p < v.end && *p >= '0' && *p <= '9'; p++)
		if (n < 1000000000000000000 / 10) n = n * 10 + (*p - '0');
	return negative ? -n : n;
}

/* json_text writes a string without its escapes to out and returns its bytes. */
static uint32_t json_text(json v, char *out, uint32_t room) {
	uint32_t n = 0;
	for (const char *p = v.at + 1; p < v.end - 1 && n + 4 < room; p++) {
		uint32_t c = (uint8_t)*p;
		if (c == '\\') {
			static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
			c = (uint8_t)*++p;
			for (int i = 0; i < 5; i++)
				if (c == (uint8_t)from[i]) {
					c = (uint8_t)to[i];
					break;
				}
			if (*p == 'u') {
				uint32_t unit[2] = {0, 0};
				for (int u = 0; u < 2; u++) {
					for (int i = 1; i <= 4; i++) unit[u] = unit[u] << 4 | (uint32_t)(p[i] <= '9' ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
					p += 4;
					if (u || unit[0] < 0xD800 || unit[0] > 0xDBFF || p + 6 >= v.end || p[1] != '\\' || p[2] != 'u') break;
					p += 2;
				}
				c = unit[1] ? 0x10000 + ((unit[0] - 0xD800) << 10) + (unit[1] - 0xDC00) : unit[0];
				n += utf8(c, out + n);
				continue;
			}
		}
		out[n++] = (char)c;
	}
	return n;
}

#endif
