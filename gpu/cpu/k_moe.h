// k_moe.h: mixture of experts (gpu/DESIGN.md, rule 8). The router is small and runs on
// one thread; the experts' matrices go through the same kernels as any other.
#include "cpu.h"
#include "numerics.h"

enum { ROUTE_SOFTMAX, ROUTE_SIGMOID, ROUTE_RAW, ROUTE_SQRT_SOFTPLUS, ROUTE_RAW_SIGMOID };

static void moe_softmax(float *x, int n) {
    float m = x[0];
    for (int i = 1; i < n; i++) m = x[i] > m ? x[i] : m;
    for (int i = 0; i < n; i += 8) vputn(x + i, nexp(vgetn(x + i, n - i) - vset(m)), n - i);
    v8f r = vset(recip1(nsum(x, n)));
    for (int i = 0; i < n; i += 8) vputn(x + i, vgetn(x + i, n - i) * r, n - i);
}

// moe_next is the index of the largest value not taken yet, the lowest of equals.
static int moe_next(const float *x, int n, const uint8_t *taken) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!taken[i] && (best < 0 || x[i] > x[best])) best = i;
    return best;
}

// moe_drop sets the scores outside the best groups to minus infinity. sums has room
// for one value per group.
static void moe_drop(float *score, int n, int groups, int used, float *sums, uint8_t *taken) {
    int size = n / groups;
    for (int g = 0; g < groups; g++) {
        memset(taken, 0, (size_t)size);
        int a = moe_next(score + g * size, size, taken);
        sums[g] = score[g * size + a];
        taken[a] = 1;
        if (size > 1) sums[g] = sums[g] + score[g * size + moe_next(score + g * size, size, taken)];
    }
    memset(taken, 0, (size_t)groups);
    for (int k = 0; k < used; k++) taken[moe_next(sums, groups, taken)] = 1;
    for (int g = 0; g < groups; g++)
        if (!taken[g])
            for (int e = 0; e < size; e++) score[g * size + e] = -__builtin_inff();
}

// op_route: i = {kind, top k, groups, groups used, normalise, share}, f = {scale}, vec = {bias}.
static void op_route(const gl_prog *p, const gl_op *op, int tid) {
    if (tid != 0) return;
    const int n = op->in[0].width, kind = op->i[0], k = op->i[1];
    float *prob = p->scratch[0], *score = prob + n, *sums = score + n;
    uint8_t *taken = (uint8_t *)(sums + n);
    for (int r = 0; r < gl_count(p, op->in[0].set); r++) {
        memcpy(prob, gl_row(p, &op->in[0], r), (size_t)n * 4);
        for (int e = 0; e < n; e++) {
            if (kind == ROUTE_SIGMOID) prob[e] = act1(ACT_SIGMOID, prob[e]);
            if (kind == ROUTE_SQRT_SOFTPLUS) {
                float s = act1(ACT_SOFTPLUS, prob[e]);
                prob[e] = s * rsqrt1(s);
            }
        }
        if (kind == ROUTE_SOFTMAX) moe_softmax(prob, n);
        for (int e = 0; e < n; e++) score[e] = op->vec[0] ? prob[e] + op->vec[0][e] : prob[e];
        if (op->i[2] > 1) moe_drop(score, n, op->i[2], op->i[3], sums, taken);
        int32_t *ids = (int32_t *)gl_row(p, &op->out[0], r);
        float *w = gl_row(p, &op->out[1], r);
        memset(taken, 0, (size_t)n);
        for (int i = 0; i < k; i++) {
            int best = moe_next(score, n, taken);
            taken[best] = 1;
            ids[i] = best / op->i[5];
            w[i] = prob[ids[i]];
        }
        if (kind == ROUTE_RAW) moe_softmax(w, k);
        for (int i = 0; kind == ROUTE_RAW_SIGMOID && i < k; i++) w[i] = act1(ACT_SIGMOID, w[i]);
        if (op->i[4]) {
            float sum = 0;
            for (int i = 0; i < k; i++) sum = sum + w[i];
            float inv = recip1(sum > 6.103515625e-5f ? sum : 6.103515625e-5f);
            for (int i = 0; i < k; i++) w[i] = w[i] * inv;
        }
        if (op->f[0] != 0 && op->f[0] != 1)
            for (int i = 0; i < k; i++) w[i] = w[i] * op->f[0];
    }
}

// op_expertmatmul: i = {top k, tiles per task}, vec = {bias}; in = {input, ids}.
static void op_expertmatmul(const gl_prog *p, const gl_op *op, int tid) {
    const gl_weight *w = op->w;
    const int k = op->i[0], step = op->i[1], per = (w->tiles + step - 1) / step, n = gl_count(p, op->in[0].set);
    const int own = op->in[0].width != w->cols; // an input per expert
    int32_t *counter = p->counters + 16 * (op - p->ops);
    for (;;) {
        int64_t i = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        if (i >= (int64_t)n * k * per) break;
        int t0 = (int)(i % per) * step, t1 = t0 + step < w->tiles ? t0 + step : w->tiles;
        int j = (int)(i / per % k), r = (int)(i / per / k);
        int expert = ((const int32_t *)gl_row(p, &op->in[1], r))[j];
        const void *x = p->quant + r * p->quant_stride + (own ? (int64_t)j * w->cols / 32 : 0);
        if (w->layout < GL_Q8) x = gl_row(p, &op->in[0], r) + (own ? (int64_t)j * w->cols : 0);
        KERNELS.mm[w->layout](w, expert, t0, t1, x, 0, 1, op->vec[0] ? op->vec[0] + (int64_t)expert * w->rows : NULL,
                              gl_row(p, &op->out[0], r) + (int64_t)j * w->rows, 0, p->scratch[tid]);
    }
}

// op_expertsum: in = {inputs, ids, weights}, vec = {scale per expert}, i = {top k}.
static void op_expertsum(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++) {
        const float *x = gl_row(p, &op->in[0], r), *w = gl_row(p, &op->in[2], r);
        const int32_t *ids = (const int32_t *)gl_row(p, &op->in[1], r);
        float *y = gl_row(p, &op->out[0], r);
        memset(y, 0, (size_t)s.c1 * 4);
        for (int k = 0; k < op->i[0]; k++, x += s.c1) {
            v8f f = vset(op->vec[0] ? w[k] * op->vec[0][ids[k]] : w[k]);
            for (int i = 0; i < s.c1; i += 8) vputn(y + i, vgetn(y + i, s.c1 - i) + f * vgetn(x + i, s.c1 - i), s.c1 - i);
        }
    }
}
