/* draw.h: drawing a token, for the plugins that choose. */
#ifndef DRAW_H
#define DRAW_H

#include "ganglion.h"

#define LN2 0.6931471805599453

/* draw_weights sums exp(logit - best) over the first n candidates. */
static double draw_weights(gg_frame *f, uint32_t n) {
	const float *logits = gg_logit_values(f);
	double sum = 0;
	for (uint32_t i = 0; i < n; i++) sum += gg_exp((double)logits[i] - logits[0]);
	return sum;
}

/* draw_log_total is the logarithm of the sum of all weights, the tail behind the view
 * included: the frame says which share of the probability the candidates hold. */
static double draw_log_total(gg_frame *f) {
	double inside = gg_logit_values(f)[0] + gg_log(draw_weights(f, f->cand_n));
	return f->cand_mass > 0 && f->cand_mass < 1 ? inside - gg_log(f->cand_mass) : inside;
}

/* draw chooses one of the first n candidates by its probability among them, which it
 * returns. */
static double draw(gg_frame *f, uint32_t n) {
	const float *logits = gg_logit_values(f);
	double sum = draw_weights(f, n), target = sum * (f->random[0] * 0x1p-32), run = 0, w = 0;
	for (uint32_t i = 0; i < n; i++) {
		double next = gg_exp((double)logits[i] - logits[0]);
		if (next == 0) break;
		w = next;
		f->token = gg_ids(f)[i];
		if ((run += w) > target) break;
	}
	return w / sum;
}

#endif
