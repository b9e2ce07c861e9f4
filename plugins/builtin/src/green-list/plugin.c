/* green-list: a watermark (Kirchenbauer et al., "A Watermark for Large Language Models",
 * 2023). The tokens before a step and a key decide which part of the vocabulary is green;
 * green tokens get a bonus, or in hard mode are the only ones allowed. Who knows the key
 * counts the green tokens of a text: builtin.GreenList.Detect. */
#include "ganglion.h"
#include <wasm_simd128.h>

GG_PLUGIN("manifest.json")

static uint32_t key, window, limit; /* a token is green when its hash is below the limit */
static float delta;
static int hard;

static uint32_t mix(uint32_t x) {
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* draw spreads the tokens of a step: a Weyl sequence and one round of mix, for a mask
 * asks for all tokens of the vocabulary. */
static uint32_t draw(uint32_t id, uint32_t seed) {
	uint32_t x = id * 0x9e3779b9u + seed;
	x = (x ^ x >> 16) * 0x7feb352du;
	return x ^ x >> 15;
}

GG_OPEN {
	char text[256];
	int32_t n = gg_string("/config/key", text, sizeof text);
	double gamma = gg_number("/config/gamma", 0.5);
	if (n <= 0) return gg_fail("green-list: the key is empty");
	for (int32_t i = 0; i < n; i++) key = mix(key ^ (uint8_t)text[i]) + 0x9e3779b9u;
	window = (uint32_t)gg_number("/config/window", 1);
	limit = (uint32_t)(gamma * 4294967296.0);
	delta = (float)gg_number("/config/delta", 2);
	hard = gg_number("/config/hard", 0) != 0;
	return 0;
}

/* seed mixes the key and the last tokens, oldest first; 0 where there are too few. */
static uint32_t seed(gg_frame *f) {
	if (f->history_len < window) return 0;
	uint32_t s = key;
	for (uint32_t i = window; i > 0; i--) s = mix(s ^ gg_history(f)[f->history_len - i]) + 0x9e3779b9u;
	return s | 1;
}

/* In soft mode only the candidates get their bonus: no other token could be chosen. */
GG_HOOK(gg_logits) {
	uint32_t s = hard ? 0 : seed(f);
	if (!s) return 0;
	for (uint32_t i = 0; i < f->cand_n; i++)
		if (draw(gg_ids(f)[i], s) < limit) gg_edit(f, gg_ids(f)[i], GG_ADD, delta);
	return f->edit_n ? GG_EDITS : 0;
}

GG_HOOK(gg_plan) {
	uint32_t s = hard ? seed(f) : 0, *mask = gg_mask(f);
	if (!s) return 0;
	const uint32_t k = 0x9e3779b9u;
	v128_t x = wasm_u32x4_make(s, k + s, 2 * k + s, 3 * k + s), next = wasm_u32x4_splat(4 * k), below = wasm_u32x4_splat(limit);
	for (uint32_t w = 0; w < (f->vocab + 31) / 32; w++) {
		uint32_t bits = 0;
#pragma clang loop unroll(full)
		for (int b = 0; b < 32; b += 4) {
			v128_t y = wasm_i32x4_mul(wasm_v128_xor(x, wasm_u32x4_shr(x, 16)), wasm_i32x4_const_splat(0x7feb352d));
			y = wasm_v128_xor(y, wasm_u32x4_shr(y, 15));
			bits |= wasm_i32x4_bitmask(wasm_u32x4_lt(y, below)) << b;
			x = wasm_i32x4_add(x, next);
		}
		mask[w] = bits;
	}
	return GG_MASK;
}
