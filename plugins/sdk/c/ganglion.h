/* ganglion.h: the C side of the Ganglion plugin ABI 1.0 (plugins/abi/ABI.md).
 *
 * One header, no library, no libc. A plugin is one file:
 *
 *     #include "ganglion.h"
 *     GG_PLUGIN("manifest.json")
 *     GG_HOOK(gg_logits) { ...; return GG_CANDS; }
 *
 * built with the command in README.md. Everything here is static: a function that is
 * not used is not in the module.
 */
#ifndef GANGLION_H
#define GANGLION_H

#include <stddef.h>
#include <stdint.h>

/* ---- The frame ------------------------------------------------------------------- */

/* What one call knows and answers. The host allocates it once per instance through
 * gg_alloc and fills it before each hook. All *_off fields count from the frame's first
 * byte; 0 means that the manifest's view did not ask for the part. */
typedef struct gg_frame {
	uint32_t magic; /* "GGF1" */
	uint32_t size;
	uint32_t abi; /* major<<16 | minor */
	uint32_t hook;
	uint32_t flags; /* GG_GREEDY… */
	uint32_t step;  /* index of the generated token that is decided */
	uint32_t position;
	uint32_t sequence; /* 0: the main one */
	uint32_t vocab;
	uint32_t last_token;
	uint32_t n_prompt, n_generated;
	uint32_t history_off, history_len, history_pos; /* pos: position of its first token */
	uint32_t cand_cap, cand_n;                      /* n: in and out */
	uint32_t cand_ids_off, cand_logits_off;
	uint32_t gather_n, gather_ids_off, gather_logits_off;
	uint32_t full_off;
	uint32_t mask_off; /* bit set = allowed, low bit first */
	uint32_t edit_off, edit_cap, edit_n;
	uint32_t out_off, out_cap, out_n; /* cap in bytes, n in tokens or bytes */
	uint32_t in_off, in_n;
	/* Over the finite logits of the whole vocabulary, temperature 1. */
	float max, mean, std, logsumexp, entropy, cand_mass; /* mass: probability of all candidates */
	float temperature; /* in and out */
	uint32_t n_finite;
	uint32_t random[8]; /* of this seed, plugin, sequence, step and hook */
	uint32_t token;     /* in for accept, out for choose */
	uint32_t backtrack, stop_reason, wake_step; /* out */
	uint64_t fuel;
	uint32_t reserved[10];
} gg_frame;

#define GG_AT(field, offset) \
	_Static_assert(offsetof(gg_frame, field) == (offset), "gg_frame." #field)
GG_AT(magic, 0x00);
GG_AT(step, 0x14);
GG_AT(vocab, 0x20);
GG_AT(n_prompt, 0x28);
GG_AT(history_off, 0x30);
GG_AT(cand_cap, 0x3C);
GG_AT(cand_ids_off, 0x44);
GG_AT(gather_n, 0x4C);
GG_AT(full_off, 0x58);
GG_AT(mask_off, 0x5C);
GG_AT(edit_off, 0x60);
GG_AT(out_off, 0x6C);
GG_AT(in_off, 0x78);
GG_AT(max, 0x80);
GG_AT(logsumexp, 0x8C);
GG_AT(temperature, 0x98);
GG_AT(random, 0xA0);
GG_AT(token, 0xC0);
GG_AT(wake_step, 0xCC);
GG_AT(fuel, 0xD0);
_Static_assert(sizeof(gg_frame) == 256, "gg_frame has 256 bytes");

enum { GG_GREEDY = 1, GG_DRAFT = 2, GG_FIRST = 4, GG_LAST = 8, GG_REPLAY = 16, GG_INTERPRETER = 32 };

/* Action bits: a hook returns the set of what it wrote. A negative value is an error. */
enum {
	GG_EDITS = 1, GG_MASK = 2, GG_CANDS = 4, GG_FULL = 8, GG_TEMP = 16, GG_TOKEN = 32, GG_FORCE = 64,
	GG_BACKTRACK = 128, GG_STOP = 256, GG_TEXT = 512, GG_IDLE = 1024,
};

enum { GG_STOP_STOP = 1, GG_STOP_LENGTH = 2, GG_STOP_CONTENT_FILTER = 3, GG_STOP_ERROR = 4 };

static inline void *gg_at(gg_frame *f, uint32_t off) { return (uint8_t *)f + off; }
static inline const uint32_t *gg_history(gg_frame *f) { return (const uint32_t *)gg_at(f, f->history_off); }
static inline uint32_t *gg_ids(gg_frame *f) { return (uint32_t *)gg_at(f, f->cand_ids_off); }
static inline float *gg_logit_values(gg_frame *f) { return (float *)gg_at(f, f->cand_logits_off); }
static inline const float *gg_gathered(gg_frame *f) { return (const float *)gg_at(f, f->gather_logits_off); }
static inline float *gg_full(gg_frame *f) { return (float *)gg_at(f, f->full_off); }
static inline uint32_t *gg_mask(gg_frame *f) { return (uint32_t *)gg_at(f, f->mask_off); }
static inline const uint32_t *gg_tokens_in(gg_frame *f) { return (const uint32_t *)gg_at(f, f->in_off); }
static inline const uint8_t *gg_text_in(gg_frame *f) { return (const uint8_t *)gg_at(f, f->in_off); }
static inline uint8_t *gg_text_out(gg_frame *f) { return (uint8_t *)gg_at(f, f->out_off); }
static inline uint32_t *gg_tokens_out(gg_frame *f) { return (uint32_t *)gg_at(f, f->out_off); }

/* ---- Edits ----------------------------------------------------------------------- */

enum { GG_ADD = 0, GG_SET = 1, GG_MUL_SIGNED = 2, GG_BAN = 3, GG_MIN = 4, GG_MAX = 5 };

typedef struct gg_edit_record {
	uint32_t id_op; /* id | op<<28 */
	float value;
} gg_edit_record;

/* gg_edit appends an edit. It returns 0 when the frame has no room for one more. */
static inline int gg_edit(gg_frame *f, uint32_t id, uint32_t op, float value) {
	if (f->edit_n >= f->edit_cap) return 0;
	gg_edit_record *r = (gg_edit_record *)gg_at(f, f->edit_off) + f->edit_n++;
	r->id_op = id | op << 28;
	r->value = value;
	return 1;
}

/* gg_force appends a token to those that the host must take next. */
static inline int gg_force(gg_frame *f, uint32_t id) {
	if (f->out_n >= f->out_cap / 4) return 0;
	gg_tokens_out(f)[f->out_n++] = id;
	return 1;
}

static inline void gg_mask_allow(gg_frame *f, uint32_t id) { gg_mask(f)[id >> 5] |= 1u << (id & 31); }
static inline void gg_mask_deny(gg_frame *f, uint32_t id) { gg_mask(f)[id >> 5] &= ~(1u << (id & 31)); }

/* gg_mask_fill allows all tokens or none. */
static inline void gg_mask_fill(gg_frame *f, int allow) {
	__builtin_memset(gg_mask(f), allow ? 0xff : 0, (f->vocab + 31) / 32 * 4);
}

/* gg_uniform makes a number in [0, 1) of a random word. */
static inline float gg_uniform(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* ---- Host functions -------------------------------------------------------------- */

/* A negative result is an error. Where a buffer is too small the host answers -100-n, n
 * being the bytes or tokens that are needed. */
enum { GG_INVALID = -1, GG_DENIED = -3, GG_NOT_FOUND = -4, GG_QUOTA = -5 };
static inline int32_t gg_needed(int32_t result) { return -result - 100; }

/* Kinds of vocab_mask and of vocab_load. */
enum {
	GG_VOCAB_REGEX = 0, GG_VOCAB_PREFIX = 1, GG_VOCAB_SUBSTRING = 2, GG_VOCAB_SCRIPT = 3, GG_VOCAB_LETTERS = 4,
	GG_VOCAB_BROKEN = 5, GG_VOCAB_CONTROL = 6, GG_VOCAB_EOG = 7,
};
enum { GG_VOCAB_TABLE = 0, GG_VOCAB_TRIE = 1, GG_VOCAB_SPANS = 2 };
enum { GG_ENCODE_SPECIAL = 1, GG_ENCODE_BEGIN = 2 };
enum { GG_BOS = 0, GG_EOS = 1, GG_EOT = 2, GG_UNK = 3, GG_PAD = 4 };

#define GG_IMPORT(name) __attribute__((import_module("ganglion"), import_name(name)))

GG_IMPORT("log") int32_t gg_log_line(int32_t level, const void *text, uint32_t n);
GG_IMPORT("set_error") int32_t gg_set_error(const void *text, uint32_t n);
GG_IMPORT("open_num") double gg_open_num(const char *pointer, uint32_t n);
GG_IMPORT("open_str") int32_t gg_open_str(const char *pointer, uint32_t n, char *out, uint32_t cap);
GG_IMPORT("open_len") int32_t gg_open_len(const char *pointer, uint32_t n);
GG_IMPORT("tok_bytes") int32_t gg_tok_bytes(uint32_t id, void *out, uint32_t cap);
GG_IMPORT("tok_encode") int32_t gg_tok_encode(const void *text, uint32_t n, uint32_t flags, uint32_t *out, uint32_t cap);
GG_IMPORT("tok_decode") int32_t gg_tok_decode(const uint32_t *ids, uint32_t n, void *out, uint32_t cap);
GG_IMPORT("tok_special") int32_t gg_tok_special(int32_t kind);
GG_IMPORT("tok_is_eog") int32_t gg_tok_is_eog(uint32_t id);
GG_IMPORT("text_tail") int32_t gg_text_tail(uint32_t n, void *out, uint32_t cap);
GG_IMPORT("vocab_mask") int32_t gg_vocab_mask(int32_t kind, const void *arg, uint32_t n, uint32_t *out);
GG_IMPORT("vocab_bytes") int32_t gg_vocab_bytes(int32_t kind);
GG_IMPORT("vocab_load") int32_t gg_vocab_load(int32_t kind, void *out);
GG_IMPORT("rand_u32") uint32_t gg_rand_u32(void);
GG_IMPORT("rand_f32") float gg_rand_f32(void);
GG_IMPORT("kv_get") int32_t gg_kv_get(const void *key, uint32_t kn, void *out, uint32_t cap);
GG_IMPORT("kv_set") int32_t gg_kv_set(const void *key, uint32_t kn, const void *value, uint32_t vn);
GG_IMPORT("kv_del") int32_t gg_kv_del(const void *key, uint32_t kn);
GG_IMPORT("clock_ms") int64_t gg_clock_ms(void);
GG_IMPORT("asset_read") int32_t gg_asset_read(const void *name, uint32_t n, uint32_t off, void *out, uint32_t cap);
GG_IMPORT("meta_set") int32_t gg_meta_set(const void *key, uint32_t kn, const void *value, uint32_t vn);
GG_IMPORT("aux_open") int32_t gg_aux_open(const uint32_t *tokens, uint32_t n, uint32_t flags);
GG_IMPORT("aux_logits") int32_t gg_aux_logits(int32_t seq, const uint32_t *ids, uint32_t n, float *out);
GG_IMPORT("aux_stats") int32_t gg_aux_stats(int32_t seq, float *out); /* max, mean, std, logsumexp, entropy */
GG_IMPORT("next") int32_t gg_next(int32_t actions);
GG_IMPORT("rest") int32_t gg_rest(void);

/* gg_work counts work, in about instructions, and rests where it is much: for loops that last
 * milliseconds. */
static inline void gg_work(uint32_t n) {
	static uint32_t done;
	if ((done += n) < 500000) return;
	done = 0;
	gg_rest();
}

/* gg_fail gives the host a message and is the value to return. */
#define gg_fail(text) (gg_set_error("" text, sizeof(text) - 1), -1)

/* ---- The module ------------------------------------------------------------------ */

#define GG_EXPORT(name) __attribute__((export_name(name), visibility("default")))

/* GG_PLUGIN(file) marks the module as an ABI 1.0 plugin, gives the host its allocator
 * and puts the manifest, a file beside the source, into the module. */
#define GG_PLUGIN(file)                                                                       \
	__asm__(".section .custom_section.ganglion.manifest,\"\",@\n.incbin \"" file "\"\n.text\n"); \
	GG_EXPORT("gg_abi_1") int32_t gg_abi_1(void);                                             \
	int32_t gg_abi_1(void) { return 0; }                                                      \
	GG_EXPORT("gg_alloc") void *gg_alloc(uint32_t size, uint32_t align);                      \
	void *gg_alloc(uint32_t size, uint32_t align) { return gg_malloc(size, align); }

/* GG_SECTION(name, file) puts a further file in: "ganglion.tests", "ganglion.asset:NAME". */
#define GG_SECTION(name, file) \
	__asm__(".section .custom_section." name ",\"\",@\n.incbin \"" file "\"\n.text\n");

/* GG_HOOK(gg_logits) { … } defines a hook; f is the frame. */
#define GG_HOOK(name)                             \
	GG_EXPORT(#name) int32_t name(gg_frame *f);   \
	int32_t name(__attribute__((unused)) gg_frame *f)

/* GG_OPEN { … } defines gg_open. Return 0, 1 for "not interested in this request", or an
 * error. */
#define GG_OPEN                                                      \
	GG_EXPORT("gg_open") int32_t gg_open(const char *gg_json, uint32_t gg_json_n); \
	int32_t gg_open(__attribute__((unused)) const char *gg_json, __attribute__((unused)) uint32_t gg_json_n)

/* ---- Memory ---------------------------------------------------------------------- */

extern unsigned char __heap_base;
static uintptr_t gg_heap;

/* gg_malloc hands out memory that is never given back: a plugin lives for one request
 * and the host restores its memory afterwards. 0 when the limit is reached. */
static inline void *gg_malloc(uint32_t size, uint32_t align) {
	if (!gg_heap) gg_heap = (uintptr_t)&__heap_base;
	if (align < 1) align = 1;
	uintptr_t at = (gg_heap + align - 1) / align * align, end = at + size;
	uintptr_t have = __builtin_wasm_memory_size(0) << 16;
	if (end < at || at < gg_heap) return 0;
	if (end > have && __builtin_wasm_memory_grow(0, (end - have + 0xffff) >> 16) == (size_t)-1) return 0;
	gg_heap = end;
	return (void *)at;
}

static inline int gg_same(const void *a, const void *b, uint32_t n) {
	const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
	for (uint32_t i = 0; i < n; i++)
		if (x[i] != y[i]) return 0;
	return 1;
}

/* ---- Configuration --------------------------------------------------------------- */

/* The text of gg_open is JSON that the host has read already; these look into it by JSON
 * pointer, for example "/config/p" or "/model/vocab". They are for gg_open alone. */
static inline double gg_number_at(const char *pointer, uint32_t n, double other) {
	double v = gg_open_num(pointer, n);
	return v == v ? v : other;
}
#define gg_number(pointer, other) gg_number_at("" pointer, sizeof(pointer) - 1, other)
#define gg_string(pointer, out, cap) gg_open_str("" pointer, sizeof(pointer) - 1, out, cap)
#define gg_length(pointer) gg_open_len("" pointer, sizeof(pointer) - 1)

/* gg_string_at reads element i < 1000 of an array of strings. */
static inline int32_t gg_string_at(const char *array, uint32_t i, char *out, uint32_t cap) {
	char path[64];
	uint32_t n = 0;
	for (; array[n] && n < sizeof path - 5; n++) path[n] = array[n];
	path[n++] = '/';
	if (i >= 100) path[n++] = (char)('0' + i / 100 % 10);
	if (i >= 10) path[n++] = (char)('0' + i / 10 % 10);
	path[n++] = (char)('0' + i % 10);
	return gg_open_str(path, n, out, cap);
}

/* ---- Mathematics ----------------------------------------------------------------- */

/* The same bits on every machine: only IEEE additions, multiplications and divisions.
 * The relative error is below 1e-13. */

typedef union {
	double f;
	uint64_t u;
} gg_bits;

static inline double gg_exp(double x) {
	if (!(x > -708)) return x == x ? 0 : x;
	if (x > 709) return __builtin_inf();
	double k = __builtin_floor(x * 1.4426950408889634 + 0.5);
	double r = x - k * 0.693147180369123816490 - k * 1.90821492927058770002e-10;
	double s = 1.0 / 479001600; /* Taylor: |r| <= 0.347, the 13th term is below 2e-16 */
	static const double c[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
	                           1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1};
	for (int i = 0; i < 12; i++) s = s * r + c[i];
	gg_bits p = {.u = (uint64_t)(1023 + (int64_t)k) << 52};
	return s * p.f;
}

static inline double gg_log(double x) {
	if (!(x > 0)) return x == 0 ? -__builtin_inf() : __builtin_nan("");
	if (x > 1.7e308) return x;
	int64_t e = 0;
	if (x < 2.3e-308) x *= 0x1p54, e = -54;
	gg_bits b = {.f = x};
	e += (int64_t)(b.u >> 52) - 1023;
	b.u = (b.u & 0xFFFFFFFFFFFFFull) | 1023ull << 52;
	if (b.f > 1.4142135623730951) b.f *= 0.5, e++;
	double s = (b.f - 1) / (b.f + 1), z = s * s, t = 0; /* |s| <= 0.172: s^21/21 is below 1e-17 */
	for (int i = 19; i >= 1; i -= 2) t = t * z + 1.0 / i;
	return 2 * s * t + (double)e * 0.6931471805599453;
}

static inline double gg_pow(double x, double y) {
	if (y == 0) return 1;
	if (x == 0) return y > 0 ? 0 : __builtin_inf();
	return gg_exp(y * gg_log(x));
}

#endif
