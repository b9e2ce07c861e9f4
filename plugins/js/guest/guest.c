/* guest.c: runs a plugin written in JavaScript. The script is the asset main.js of the
 * module; it defines functions open, prompt, plan, logits, choose, accept, text, end and
 * rollback, as far as its manifest names them. prelude.js gives it the frame and the host. */
#include "ganglion.h"
#include "quickjs.h"
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))

static JSContext *js;
static JSValue frame = JS_UNDEFINED;
static gg_frame *framed; /* the frame that the value was made for */

EXPORT("gg_abi_1") int32_t abi(void) { return 0; }

EXPORT("gg_alloc") void *alloc(uint32_t size, uint32_t align) { return aligned_alloc(align < 64 ? 64 : align, (size + 63) / 64 * 64); }

/* failed tells the host what was thrown, and is the value to return. */
static int32_t failed(void) {
	JSValue e = JS_GetException(js);
	const char *text = JS_ToCString(js, e);
	if (text) gg_set_error(text, (uint32_t)strlen(text));
	JS_FreeCString(js, text);
	JS_FreeValue(js, e);
	return -1;
}

/* call runs a function of the script; other is the result where there is none. */
static int32_t call(const char *name, int n, JSValue *args, int32_t other) {
	JSValue global = JS_GetGlobalObject(js), fn = JS_GetPropertyStr(js, global, name), result;
	int32_t out = other;
	JS_FreeValue(js, global);
	if (JS_IsFunction(js, fn)) {
		result = JS_Call(js, fn, JS_UNDEFINED, n, args);
		if (JS_IsException(result)) out = failed();
		else if (!JS_IsUndefined(result) && !JS_IsNull(result)) out = JS_ToInt32(js, &out, result) ? failed() : out;
		JS_FreeValue(js, result);
	}
	JS_FreeValue(js, fn);
	return out;
}

static int32_t hook(const char *name, gg_frame *f) {
	if (framed != f) {
		JSValue global = JS_GetGlobalObject(js), make = JS_GetPropertyStr(js, global, "__frame");
		JSValue block = JS_NewArrayBuffer(js, (uint8_t *)f, f->size, 0, NULL, NULL, 0);
		frame = JS_Call(js, make, JS_UNDEFINED, 1, &block);
		JS_FreeValue(js, block), JS_FreeValue(js, make), JS_FreeValue(js, global);
		if (JS_IsException(frame)) return failed();
		framed = f;
	}
	return call(name, 1, &frame, 0);
}

#define HOOK(name) EXPORT("gg_" #name) int32_t hook_##name(gg_frame *f) { return hook(#name, f); }
HOOK(prompt) HOOK(plan) HOOK(logits) HOOK(choose) HOOK(accept) HOOK(text) HOOK(end) HOOK(rollback)

/* ---- What the script may ask the host -------------------------------------------- */

static JSValue bytes_or_error(int32_t n, const uint8_t *b) {
	if (n < 0) return JS_ThrowRangeError(js, "the host answers %d", (int)n);
	return JS_NewStringLen(js, (const char *)b, (size_t)n);
}

static JSValue host_log(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
	size_t n;
	const char *text = JS_ToCStringLen(c, &n, argv[0]);
	if (!text) return JS_EXCEPTION;
	gg_log_line(1, text, (uint32_t)n);
	JS_FreeCString(c, text);
	return JS_UNDEFINED;
}

static JSValue host_token(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
	uint8_t b[1024];
	uint32_t id;
	if (JS_ToUint32(c, &id, argv[0])) return JS_EXCEPTION;
	return bytes_or_error(gg_tok_bytes(id, b, sizeof b), b);
}

static JSValue host_encode(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
	static uint32_t ids[4096];
	size_t n;
	uint32_t flags = 0;
	const char *text = JS_ToCStringLen(c, &n, argv[0]);
	if (!text) return JS_EXCEPTION;
	if (JS_ToUint32(c, &flags, argv[1])) flags = 0;
	int32_t got = gg_tok_encode(text, (uint32_t)n, flags, ids, 4096);
	JS_FreeCString(c, text);
	if (got < 0) return JS_ThrowRangeError(c, "the host answers %d", (int)got);
	JSValue list = JS_NewArray(c);
	for (int32_t i = 0; i < got; i++) JS_SetPropertyUint32(c, list, (uint32_t)i, JS_NewUint32(c, ids[i]));
	return list;
}

static JSValue host_ends(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
	uint32_t id;
	if (JS_ToUint32(c, &id, argv[0])) return JS_EXCEPTION;
	return JS_NewBool(c, gg_tok_is_eog(id) == 1);
}

static JSValue host_tail(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
	static uint8_t b[16384];
	uint32_t n;
	if (JS_ToUint32(c, &n, argv[0])) return JS_EXCEPTION;
	return bytes_or_error(gg_text_tail(n < sizeof b ? n : sizeof b, b, sizeof b), b);
}

static JSValue host_random(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
	return JS_NewFloat64(c, gg_rand_f32());
}

/* host_mask fills a Uint32Array of the vocabulary: mask(kind, text, array). */
static JSValue host_mask(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
	size_t n, size;
	int32_t kind;
	uint8_t *out = JS_GetUint8Array(c, &size, argv[2]);
	if (!out || JS_ToInt32(c, &kind, argv[0])) return JS_EXCEPTION;
	const char *text = JS_ToCStringLen(c, &n, argv[1]);
	if (!text) return JS_EXCEPTION;
	int32_t count = framed && size < (framed->vocab + 31) / 32 * 4 ? -1 : gg_vocab_mask(kind, text, (uint32_t)n, (uint32_t *)out);
	JS_FreeCString(c, text);
	return count < 0 ? JS_ThrowRangeError(c, "the host answers %d", (int)count) : JS_NewInt32(c, count);
}

/* What the interpreter does besides running scripts (its own start, parsing, sorting)
 * allocates: rests come by the pieces. */
static void *counted_calloc(void *opaque, size_t n, size_t size) {
	gg_work(10000);
	return calloc(n, size);
}
static void *counted_malloc(void *opaque, size_t size) {
	gg_work(10000);
	return malloc(size);
}
static void *counted_realloc(void *opaque, void *p, size_t size) {
	gg_work(10000);
	return realloc(p, size);
}
/* counted_token is called for each token that is parsed (build.sh). */
void counted_token(void) { gg_work(20000); }
static void counted_free(void *opaque, void *p) { free(p); }
static size_t any_size(const void *p) { return 0; }
static const JSMallocFunctions counted = {counted_calloc, counted_malloc, counted_free, counted_realloc, any_size};

/* rested is asked by the interpreter every 100 calls and turns of loops (build.sh). */
static int rested(JSRuntime *rt, void *data) {
	gg_rest();
	return 0;
}

static const char prelude[] = {
#include "prelude.inc"
    0};

static int eval(const char *text, size_t n, const char *name) {
	JSValue v = JS_Eval(js, text, n, name, JS_EVAL_TYPE_GLOBAL);
	int bad = JS_IsException(v);
	JS_FreeValue(js, v);
	return bad;
}

EXPORT("gg_open") int32_t open_script(const char *json, uint32_t n) {
	static const struct {
		const char *name;
		JSCFunction *f;
		int n;
	} functions[] = {{"log", host_log, 1}, {"tokenText", host_token, 1}, {"encode", host_encode, 2}, {"endsText", host_ends, 1},
	                 {"textTail", host_tail, 1}, {"__random", host_random, 0}, {"__mask", host_mask, 3}};
	char *source = 0;
	uint32_t have = 0;
	for (int32_t got = 1; got > 0; have += (uint32_t)(got > 0 ? got : 0)) {
		source = realloc(source, have + 65537);
		if (!source) return gg_fail("no memory for the script");
		got = gg_asset_read("main.js", 7, have, source + have, 65536);
		if (got < 0) return gg_fail("the module has no script");
	}
	source[have] = 0;
	JSRuntime *rt = JS_NewRuntime2(&counted, 0);
	if (!rt || !(js = JS_NewContext(rt))) return gg_fail("no memory for the interpreter");
	JS_SetMaxStackSize(rt, 192 << 10);
	JS_SetInterruptHandler(rt, rested, 0);
	JSValue global = JS_GetGlobalObject(js);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		JS_SetPropertyStr(js, global, functions[i].name, JS_NewCFunction(js, functions[i].f, functions[i].name, functions[i].n));
	JS_FreeValue(js, global);
	if (eval(prelude, sizeof prelude - 1, "prelude.js") || eval(source, have, "main.js")) return failed();
	free(source);
	char *text = malloc(n + 1);
	if (!text) return gg_fail("no memory for the request");
	memcpy(text, json, n);
	text[n] = 0;
	JSValue request = JS_ParseJSON(js, text, n, "request");
	free(text);
	if (JS_IsException(request)) return failed();
	int32_t answer = call("open", 1, &request, 0);
	JS_FreeValue(js, request);
	return answer;
}
