/* json-schema: the text is JSON that a schema allows. README.md says which part of JSON
 * Schema that is; a keyword that would be ignored is an error. Members come in the order
 * of "properties": a schema given as a text keeps it, one given as an object comes with its
 * names sorted. */
#include "engine.h"
#include "json.h"
#include "pattern.h"

GG_PLUGIN("manifest.json")

enum { DEEP = 48, REFERENCES = 256, PROPERTIES = 512 };

static json root;
static uint32_t blank, string_rule, integer_rule, number_rule, value_rule, object_rule, array_rule;
static struct {
	const char *at;
	uint32_t rule;
} references[REFERENCES];
static uint32_t n_references;

static uint32_t schema(json s, int depth);
static void add_ref(uint32_t rule) { add(ELEMENT(REF, rule)); }
static void or(void) { add(ELEMENT(ALT, 0)); }

static void ascii(const char *set) {
	struct class c = {.n = 0};
	for (; *set; set++) class_add(&c, (uint8_t)*set, (uint8_t)*set);
	add_class(&c);
}

static void digits(uint32_t least, uint32_t most) {
	uint32_t from = n_open;
	add(ELEMENT(SET, range_set('0', '9')));
	repeat(from, least, most);
}

/* string_character is one character of a string, escapes included. */
static uint32_t string_character(void) {
	uint32_t from = n_open;
	struct class c = {.n = 0};
	class_add(&c, 0x20, '"' - 1), class_add(&c, '"' + 1, '\\' - 1), class_add(&c, '\\' + 1, 0x7E), class_add(&c, 0x80, 0x10FFFF);
	add_class(&c);
	or(), add_text("\\"), ascii("\"\\/bfnrt");
	or(), add_text("\\u");
	for (int i = 0; i < 4; i++) { /* 0000–CFFF and E000–FFFF: halves of pairs are left out */
		if (i == 0) ascii("0123456789abcefABCEF");
		else ascii("0123456789abcdefABCDEF");
	}
	return make_rule(from);
}

static void basics(void) {
	uint32_t from = n_open, more;
	add_text(" "), or(), add_text("\n"), more = n_open, ascii(" \t"), repeat(more, 0, 20), or();
	blank = make_rule(from);
	add_text("\""), more = n_open, add_ref(string_character()), repeat(more, 0, UNBOUNDED), add_text("\"");
	string_rule = make_rule(from);
	add_text("-"), repeat(from, 0, 1), more = n_open, add_text("0"), or(), add(ELEMENT(SET, range_set('1', '9'))), digits(0, 17), add(wrap(more));
	integer_rule = make_rule(from);
	add_ref(integer_rule);
	more = n_open, add_text("."), digits(1, 17), repeat(more, 0, 1);
	more = n_open, ascii("eE"), ascii("+-"), repeat(n_open - 1, 0, 1), digits(1, 3), repeat(more, 0, 1);
	number_rule = make_rule(from);
	value_rule = new_rule(), object_rule = new_rule(), array_rule = new_rule();
	from = n_open;
	add_ref(string_rule), or(), add_ref(number_rule), or(), add_ref(object_rule), or(), add_ref(array_rule), or();
	add_text("true"), or(), add_text("false"), or(), add_text("null");
	close_rule(value_rule, from);
}

/* literal adds the JSON text of a value, without blanks between its parts. */
static void literal(json v) {
	int quoted_part = 0;
	for (const char *p = v.at; p < v.end; p++) {
		if (*p == '"') quoted_part = !quoted_part;
		if (!quoted_part && (uint8_t)*p <= ' ') continue;
		add_byte((uint8_t)*p);
		if (*p == '\\' && ++p < v.end) add_byte((uint8_t)*p);
	}
}

/* list adds least to most items with commas between them. */
static void list(uint32_t item, uint32_t least, uint32_t most) {
	if (most == 0) return;
	uint32_t from = n_open;
	add_ref(item);
	uint32_t more = n_open;
	add_text(","), add_ref(blank), add_ref(item);
	repeat(more, least ? least - 1 : 0, most == UNBOUNDED ? UNBOUNDED : most - 1);
	if (least == 0) repeat(from, 0, 1);
}

static uint32_t bound(json v, uint32_t other) {
	int64_t n = json_whole(v, other);
	return n < 0 ? 0 : n > MOST_REPEATS && n != UNBOUNDED ? MOST_REPEATS + 1 : (uint32_t)n;
}

static void array(json s, int depth) {
	json items = json_get(s, "items");
	uint32_t least = bound(json_get(s, "minItems"), 0), most = bound(json_get(s, "maxItems"), UNBOUNDED);
	uint32_t item = items.at ? schema(items, depth) : value_rule;
	add_text("["), add_ref(blank);
	list(item, least, most);
	add_ref(blank), add_text("]");
}

/* member is a quoted name, a colon and a value. */
static uint32_t member(json name, uint32_t value) {
	uint32_t from = n_open;
	if (name.at) literal(name);
	else add_ref(string_rule);
	add_text(":"), add_ref(blank), add_ref(value);
	return make_rule(from);
}

/* object goes through the properties from the last to the first: first holds what may
 * come from property i on where nothing was written before, later where something was. */
static void object(json s, int depth) {
	json rest = json_get(s, "properties"), required = json_get(s, "required"), extra = json_get(s, "additionalProperties");
	static struct {
		json name, value;
	} stack[PROPERTIES];
	static uint32_t n_stack;
	uint32_t base = n_stack, from = n_open, first, later;
	json name, value;
	if (json_get(s, "minProperties").at || json_get(s, "maxProperties").at) set_fault("minProperties and maxProperties are not supported");
	if (rest.at)
		while (json_next(&rest, &name, &value)) {
			if (n_stack == PROPERTIES) return set_fault("too many properties");
			stack[n_stack].name = name, stack[n_stack++].value = value;
		}
	int known = n_stack > base, any = extra.at ? *extra.at != 'f' : !known;
	if (any) {
		uint32_t pair = member((json){0, 0}, extra.at && *extra.at == '{' ? schema(extra, depth) : value_rule);
		list(pair, 0, UNBOUNDED);
		first = make_rule(from);
		uint32_t more = n_open;
		add_text(","), add_ref(blank), add_ref(pair), repeat(more, 0, UNBOUNDED);
		later = make_rule(from);
	} else {
		first = later = make_rule(from);
	}
	uint32_t found = 0;
	while (n_stack > base) {
		name = stack[--n_stack].name, value = stack[n_stack].value;
		uint32_t pair = member(name, schema(value, depth));
		int needed = 0;
		json r = required, entry;
		while (r.at && !needed && json_next(&r, 0, &entry)) needed = json_is(name, entry.at + 1, (uint32_t)(entry.end - entry.at - 2));
		found += (uint32_t)needed;
		add_ref(pair), add_ref(later);
		if (!needed) or(), add_ref(first);
		first = make_rule(from);
		add_text(","), add_ref(blank), add_ref(pair), add_ref(later);
		if (!needed) or(), add_ref(later);
		later = make_rule(from);
	}
	if (found < json_count(required)) set_fault("a required property is not among the properties");
	add_text("{"), add_ref(blank), add_ref(first), add_ref(blank), add_text("}");
}

static void text(json s) {
	static char expression[4096];
	json p = json_get(s, "pattern"), form = json_get(s, "format");
	add_text("\"");
	if (p.at) {
		uint32_t n = json_text(p, expression, sizeof expression);
		if (json_get(s, "minLength").at || json_get(s, "maxLength").at) set_fault("pattern and a length together are not supported");
		quoted = 1;
		pattern(expression, n, 1);
		quoted = 0;
	} else if (form.at) {
		static const char date[] = "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])", time[] = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)",
		                  uuid[] = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", mail[] = "[a-z0-9._-]{1,40}@[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\\.[a-z]{2,10}){1,3}";
		int both = json_is(form, "date-time", 9);
		if (both || json_is(form, "date", 4)) pattern(date, sizeof date - 1, 0);
		if (both) add_text("T");
		if (both || json_is(form, "time", 4)) pattern(time, sizeof time - 1, 0);
		else if (json_is(form, "uuid", 4)) pattern(uuid, sizeof uuid - 1, 0);
		else if (json_is(form, "email", 5)) pattern(mail, sizeof mail - 1, 0);
		else if (!json_is(form, "date", 4)) set_fault("an unknown format");
	} else {
		uint32_t from = n_open;
		add_ref(string_character());
		repeat(from, bound(json_get(s, "minLength"), 0), bound(json_get(s, "maxLength"), UNBOUNDED));
	}
	add_text("\"");
}

/* below adds the numbers of n digits from lo to hi, digit by digit. */
static void between(const char *lo, const char *hi, uint32_t n) {
	uint32_t same = 0, from = n_open;
	while (same < n && lo[same] == hi[same]) add_byte((uint8_t)lo[same++]);
	if (same == n) return;
	uint32_t left = n - same - 1, mark = n_open, part = 0;
	char bound_lo[20], bound_hi[20];
	for (char d = lo[same]; d <= hi[same] && !fault; d++) {
		int at_lo = d == lo[same], at_hi = d == hi[same];
		if (part++) or();
		add_byte((uint8_t)d);
		if (!left) continue;
		if (!at_lo && !at_hi) {
			digits(left, left);
			continue;
		}
		for (uint32_t i = 0; i < left; i++) bound_lo[i] = at_lo ? lo[same + 1 + i] : '0', bound_hi[i] = at_hi ? hi[same + 1 + i] : '9';
		uint32_t inner = n_open;
		between(bound_lo, bound_hi, left);
		add(wrap(inner));
	}
	add(wrap(mark));
	(void)from;
}

static uint32_t decimal_of(int64_t v, char *out) {
	char back[20];
	uint32_t n = 0;
	do back[n++] = (char)('0' + v % 10);
	while (v /= 10);
	for (uint32_t i = 0; i < n; i++) out[i] = back[n - 1 - i];
	return n;
}

/* upward adds alternatives for lo to hi, both at least 0, by their number of digits. */
static void upward(int64_t lo, int64_t hi, int minus, int *parts_added) {
	char a[20], b[20];
	while (lo <= hi && !fault) {
		uint32_t n = decimal_of(lo, a);
		int64_t end = 1;
		for (uint32_t i = 0; i < n; i++) end *= 10;
		end = end - 1 < hi ? end - 1 : hi;
		decimal_of(end, b);
		if ((*parts_added)++) or();
		if (minus) add_text("-");
		uint32_t from = n_open;
		between(a, b, n);
		add(wrap(from));
		lo = end + 1;
	}
}

static void whole(json s) {
	static const int64_t far = 99999999999999999;
	json low = json_get(s, "minimum"), high = json_get(s, "maximum"), above = json_get(s, "exclusiveMinimum"), beneath = json_get(s, "exclusiveMaximum");
	int64_t lo = json_whole(low, -far), hi = json_whole(high, far);
	if (above.at && json_whole(above, 0) + 1 > lo) lo = json_whole(above, 0) + 1;
	if (beneath.at && json_whole(beneath, 0) - 1 < hi) hi = json_whole(beneath, 0) - 1;
	if (json_get(s, "multipleOf").at) set_fault("multipleOf is not supported");
	if (!low.at && !high.at && !above.at && !beneath.at) return add_ref(integer_rule);
	if (lo > hi || lo < -far || hi > far) return set_fault("the bounds of an integer leave none, or are too far");
	int parts_added = 0;
	if (lo < 0) upward(hi < 0 ? -hi : 1, -lo, 1, &parts_added);
	if (hi >= 0) upward(lo > 0 ? lo : 0, hi, 0, &parts_added);
}

/* typed adds the values of one type. */
static void typed(json s, json type, int depth) {
	if (json_is(type, "string", 6)) text(s);
	else if (json_is(type, "integer", 7)) whole(s);
	else if (json_is(type, "number", 6)) {
		if (json_get(s, "minimum").at || json_get(s, "maximum").at || json_get(s, "exclusiveMinimum").at || json_get(s, "exclusiveMaximum").at || json_get(s, "multipleOf").at)
			set_fault("bounds of numbers are not supported, of integers they are");
		add_ref(number_rule);
	} else if (json_is(type, "boolean", 7)) add_text("true"), or(), add_text("false");
	else if (json_is(type, "null", 4)) add_text("null");
	else if (json_is(type, "array", 5)) array(s, depth);
	else if (json_is(type, "object", 6)) object(s, depth);
	else set_fault("an unknown type");
}

/* resolve finds what "#/…" points to. */
static json resolve(json ref) {
	json at = root;
	const char *p = ref.at + 1, *end = ref.end - 1;
	if (p < end && *p == '#') p++;
	else set_fault("a reference must begin with #");
	while (p < end && at.at && !fault) {
		const char *from = ++p;
		while (p < end && *p != '/') p++;
		at = json_member(at, from, (uint32_t)(p - from));
	}
	if (!at.at) set_fault("a reference leads nowhere");
	return at;
}

static void any_of(json list_of, int depth) {
	json s;
	uint32_t n = 0;
	while (json_next(&list_of, 0, &s)) {
		uint32_t rule = schema(s, depth);
		if (n++) or();
		add_ref(rule);
	}
}

static void refuse_unknown(json s) {
	static const char *const known = " $schema $id $defs definitions $ref title description default examples $comment readOnly writeOnly deprecated type enum const anyOf oneOf properties required additionalProperties"
	                                 " items minItems maxItems minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minProperties maxProperties ";
	json name, v;
	while (json_next(&s, &name, &v)) {
		uint32_t n = (uint32_t)(name.end - name.at) - 2, ok = 0;
		for (const char *k = known; *k && !ok; k++) ok = *k == ' ' && k[1] && gg_same(k + 1, name.at + 1, n) && k[1 + n] == ' ';
		if (!ok) set_fault("a keyword of the schema is not supported");
	}
}

/* schema makes a rule of a schema. */
static uint32_t schema(json s, int depth) {
	uint32_t from = n_open;
	json v, type;
	if (fault || !s.at) return set_fault("a schema is missing"), 0;
	if (*s.at == 't') return value_rule;
	if (*s.at != '{') return set_fault("a schema is neither an object nor true"), 0;
	if (depth > DEEP) return set_fault("the schema is too deep"), 0;
	for (uint32_t i = 0; i < n_references; i++)
		if (references[i].at == s.at) return references[i].rule;
	refuse_unknown(s);
	if ((v = json_get(s, "$ref")).at) return schema(resolve(v), depth + 1);
	if (n_references == REFERENCES) return set_fault("too many schemas"), 0;
	uint32_t rule = new_rule();
	references[n_references].at = s.at, references[n_references++].rule = rule;
	if ((v = json_get(s, "const")).at) literal(v);
	else if ((v = json_get(s, "enum")).at) {
		json entry;
		for (uint32_t n = 0; json_next(&v, 0, &entry); literal(entry))
			if (n++) or();
	} else if ((v = json_get(s, "anyOf")).at || (v = json_get(s, "oneOf")).at) any_of(v, depth + 1);
	else if ((type = json_get(s, "type")).at && *type.at == '[') {
		json one;
		uint32_t n = 0;
		while (json_next(&type, 0, &one)) {
			uint32_t mark = n_open;
			typed(s, one, depth + 1);
			uint32_t part = make_rule(mark);
			if (n++) or();
			add_ref(part);
		}
	} else if (type.at) typed(s, type, depth + 1);
	else if (json_get(s, "properties").at) object(s, depth + 1);
	else add_ref(value_rule);
	close_rule(rule, from);
	return rule;
}

GG_OPEN {
	static char source[64 << 10];
	int32_t n = gg_string("/config/schema", source, sizeof source);
	if (n <= 0) return gg_fail("json-schema: the schema is missing or above 64 KiB");
	root = json_trim((json){source, source + n});
	const char *behind = json_valid(root.at, root.end, 0);
	if (!behind || json_trim((json){behind, root.end}).at != root.end) return gg_fail("the schema is not JSON");
	static const char none[] = "{}";
	json empty = {none, none + 2};
	basics();
	uint32_t from = n_open;
	object(empty, 0);
	close_rule(object_rule, from);
	array(empty, 0);
	close_rule(array_rule, from);
	uint32_t rule = schema(root, 0);
	engine_open(rule);
	return opened();
}
