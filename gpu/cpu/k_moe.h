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

// moe_pairs are the chosen experts of a batch, grouped: pair r·k + j is row r's j-th.
typedef struct {
    int32_t *used;  // experts that some row chose, ascending
    int32_t *start; // [expert] where its pairs begin; [experts] the end
    int32_t *pair;  // pairs by expert, rows ascending
    int nused;
} moe_pairs;

// moe_group sorts the pairs by counting. Every thread does it for itself: it costs less
// than a barrier.
static moe_pairs moe_group(const gl_prog *p, const gl_op *op, int n, int experts, int32_t *mem) {
    const int k = op->i[0];
    moe_pairs g = {mem, mem + experts, mem + 2 * experts + 1, 0};
    memset(g.start, 0, (size_t)(experts + 1) * 4);
    for (int r = 0; r < n; r++)
        for (int j = 0; j < k; j++) g.start[((const int32_t *)gl_row(p, &op->in[1], r))[j] + 1]++;
    for (int e = 0; e < experts; e++) {
        if (g.start[e + 1] > 0) g.used[g.nused++] = e;
        g.start[e + 1] += g.start[e];
    }
    for (int r = 0; r < n; r++)
        for (int j = 0; j < k; j++) g.pair[g.start[((const int32_t *)gl_row(p, &op->in[1], r))[j]]++] = r * k + j;
    for (int e = experts; e > 0; e--) g.start[e] = g.start[e - 1]; // filling moved each to the next
    g.start[0] = 0;
    return g;
}

// moe_in and moe_out are the input and the output of a pair.
INLINE const uint8_t *moe_in(const gl_prog *p, const gl_op *op, int pair) {
    const gl_weight *w = op->w;
    const int r = pair / op->i[0], j = pair % op->i[0];
    const int64_t own = op->in[0].width != w->cols ? (int64_t)j * w->cols : 0; // an input per expert
    if (w->layout < GL_Q8) return (const uint8_t *)(gl_row(p, &op->in[0], r) + own);
    return (const uint8_t *)(p->quant + (r * p->quant_stride + own / 32) * p->quant_bytes);
}

// moe_bytes is the size of one input.
INLINE size_t moe_bytes(const gl_prog *p, const gl_weight *w) {
    return w->layout >= GL_Q8 ? (size_t)(w->cols / 32 * p->quant_bytes) : (size_t)w->cols * 4;
}

INLINE float *moe_out(const gl_prog *p, const gl_op *op, int pair) {
    return gl_row(p, &op->out[0], pair / op->i[0]) + (int64_t)(pair % op->i[0]) * op->w->rows;
}

// moe_rows multiplies n pairs by tiles [t0, t1) of their expert's matrix. Their inputs
// are put side by side first and their outputs put back, so that the kernels take them
// several at a time, as neighbouring rows of any other product.
static void moe_rows(const gl_prog *p, const gl_op *op, int expert, const int32_t *pair, int n, int t0, int t1, float *mem,
                     float *scratch) {
    const gl_weight *w = op->w;
    const float *bias = op->vec[0] ? op->vec[0] + (int64_t)expert * w->rows : NULL;
    if (n == 1) {
        KERNELS.mm[p->exact][w->layout](w, expert, t0, t1, moe_in(p, op, *pair), 0, 1, bias, moe_out(p, op, *pair), 0, scratch);
        return;
    }
    const int packed = w->layout >= GL_Q8, c0 = t0 * GL_TILE, cols = (t1 * GL_TILE < w->rows ? t1 * GL_TILE : w->rows) - c0;
    const size_t bytes = moe_bytes(p, w);
    uint8_t *x = (uint8_t *)mem;
    float *y = mem + GL_MOE_ROWS * bytes / 4;
    const int64_t ys = (int64_t)(t1 - t0) * GL_TILE;
    for (int i = 0; i < n; i++) memcpy(x + i * bytes, moe_in(p, op, pair[i]), bytes);
    // The kernels count columns from tile 0, of which y has no room for those before t0.
    KERNELS.mm[p->exact][w->layout](w, expert, t0, t1, x, packed ? w->cols / 32 : w->cols, n, bias, y - c0, ys, scratch);
    for (int i = 0; i < n; i++) memcpy(moe_out(p, op, pair[i]) + c0, y + i * ys, (size_t)cols * 4);
}

// op_expertmatmul: i = {top k, tiles per task}, vec = {bias}; in = {input, ids}.
//
// The plain version multiplies every row alone. In a batch the rows that chose an
// expert are multiplied together, each tile once for up to GL_MOE_ROWS of them: 512
// rows over 32 experts, 4 each, took 1/1.4 of the processor time in Q4_K, 1/1.6 in Q8_0,
// 1/1.2 in MXFP4 (BenchmarkExperts, fast mode). A row's bits do not depend on its neighbours, for the kernels' do
// not.
static void op_expertmatmul(const gl_prog *p, const gl_op *op, int tid) {
    const gl_weight *w = op->w;
    const int k = op->i[0], step = op->i[1], per = (w->tiles + step - 1) / step, n = gl_count(p, op->in[0].set);
    float *scratch = p->scratch[tid], *mem = scratch + GL_TILE * (((int64_t)w->cols + 15) & ~15);
    moe_pairs g = {0};
    if (n > 1) g = moe_group(p, op, n, w->experts, (int32_t *)(mem + GL_MOE_ROWS * (moe_bytes(p, w) / 4 + (size_t)(step * GL_TILE))));
    const int64_t tasks = (int64_t)(n > 1 ? g.nused : n * k) * per;
    int32_t *counter = p->counters + 16 * (op - p->ops);
    for (;;) {
        int64_t i = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        if (i >= tasks || gl_stopped(p)) break;
        int t0 = (int)(i % per) * step, t1 = t0 + step < w->tiles ? t0 + step : w->tiles, j = (int)(i / per);
        if (n == 1) {
            moe_rows(p, op, ((const int32_t *)gl_row(p, &op->in[1], 0))[j], &j, 1, t0, t1, mem, scratch);
            continue;
        }
        for (int e = g.used[j], at = g.start[e]; at < g.start[e + 1]; at += GL_MOE_ROWS) {
            int rows = g.start[e + 1] - at < GL_MOE_ROWS ? g.start[e + 1] - at : GL_MOE_ROWS;
            moe_rows(p, op, e, g.pair + at, rows, t0, t1, mem, scratch);
        }
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
