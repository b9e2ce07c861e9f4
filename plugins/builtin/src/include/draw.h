/* draw.h: drawing a token, for the plugins that choose. */
#ifndef DRAW_H
#define DRAW_H

#include "ganglion.h"

#define LN2 0.6931471805599453

/* draw_scale is 1 / temperature: candidates come at temperature 1. At 0 all weight is on
 * the first. */
static double draw_scale(gg_frame *f) { return f->temperature > 0 ? 1.0 / f->temperature : 1e30; }

/* draw_weight is the weight of candidate i, the first one's being 1. */
static double draw_weight(gg_frame *f, uint32_t i) {
	const float *logits = gg_logit_values(f);
	return i == 0 ? 1 : gg_exp(((double)logits[i] - logits[0]) * draw_scale(f));
}

static double draw_total(gg_frame *f, uint32_t n) {
	double sum = 0;
	for (uint32_t i = 0; i < n; i++) sum += draw_weight(f, i);
	return sum;
}

/* draw chooses one of the first n candidates by its probability among them, which it
 * returns. */
static double draw(gg_frame *f, uint32_t n) {
	double sum = draw_total(f, n), target = sum * (f->random[0] * 0x1p-32), run = 0, w = 0;
	for (uint32_t i = 0; i < n; i++) {
		double next = draw_weight(f, i);
		if (next == 0) break;
		w = next;
		f->token = gg_ids(f)[i];
		if ((run += w) > target) break;
	}
	return w / sum;
}

#endif
