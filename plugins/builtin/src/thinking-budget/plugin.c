/* thinking-budget: counts the tokens between the marks of a model's reasoning, and at the
 * budget says a last word and closes it. */
#include "ganglion.h"

GG_PLUGIN("manifest.json")

enum { MOST = 64 };

static struct mark {
	uint32_t ids[MOST];
	int32_t n;
} open_mark, close_mark, ending; /* ending: the message and the closing mark */

static uint32_t recent[MOST], n_recent, spent, budget;
static int thinking;

static int32_t encode(const char *pointer, uint32_t n, struct mark *m, uint32_t room, uint32_t from) {
	char text[256];
	int32_t bytes = gg_open_str(pointer, n, text, sizeof text);
	if (bytes <= 0) return bytes;
	return gg_tok_encode(text, (uint32_t)bytes, GG_ENCODE_SPECIAL, m->ids + from, room);
}

GG_OPEN {
	budget = (uint32_t)gg_number("/config/budget", 512);
	thinking = gg_number("/config/already_open", 0) != 0;
	open_mark.n = encode("/config/open", 12, &open_mark, MOST, 0);
	close_mark.n = encode("/config/close", 13, &close_mark, MOST, 0);
	ending.n = encode("/config/message", 15, &ending, MOST, 0);
	if (open_mark.n <= 0 || close_mark.n <= 0 || ending.n < 0 || ending.n + close_mark.n > MOST)
		return gg_fail("thinking-budget: marks and message must be texts of 1 to 64 tokens");
	for (int32_t i = 0; i < close_mark.n; i++) ending.ids[ending.n++] = close_mark.ids[i];
	return 0;
}

/* ends_with tells whether the newest tokens are a mark. */
static int ends_with(const struct mark *m) {
	if ((int32_t)n_recent < m->n) return 0;
	for (int32_t i = 0; i < m->n; i++)
		if (recent[(n_recent - (uint32_t)(m->n - i)) % MOST] != m->ids[i]) return 0;
	return 1;
}

GG_HOOK(gg_accept) {
	for (uint32_t i = 0; i < f->in_n; i++) {
		recent[n_recent++ % MOST] = gg_tokens_in(f)[i];
		if (thinking) spent++;
		if (thinking ? ends_with(&close_mark) : ends_with(&open_mark)) thinking = !thinking;
	}
	return 0;
}

GG_HOOK(gg_plan) {
	if (!thinking || spent < budget) return 0;
	f->out_n = 0;
	for (int32_t i = 0; i < ending.n; i++) gg_force(f, ending.ids[i]);
	return GG_FORCE;
}
