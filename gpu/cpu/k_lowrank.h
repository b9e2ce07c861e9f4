// k_lowrank.h: low-rank updates of a matrix's product (gpu/DESIGN.md, rule 11). Both
// factors are small and go through the float kernels: the activations stay float32, so
// that an update costs no accuracy where the matrix itself is multiplied in 8 bits.
#include "cpu.h"
#include "numerics.h"

enum {
    LR_ROWS = 32,  // rows of the batch in a task
    LR_TILES = 16, // tiles of B in a task
};

// lr_strength is what the update of row r is multiplied by; 0 for none.
INLINE float lr_strength(const gl_prog *p, const gl_op *op, int r) {
    int b = gl_batch_row(p, &op->out[0], r);
    if (op->i[1] && p->tokens[b] < 0) return 0;
    return p->scales[(int64_t)b * p->adapters + op->i[0]] * op->f[0];
}

INLINE float *lr_mid(const gl_prog *p, int r) { return p->mid + (int64_t)r * p->mid_stride; }

// lr_run finds the next rows from r on, before end, that have a strength and share one
// product: all that stand together, or a single row where each has its own matrices.
INLINE int lr_run(const gl_prog *p, const gl_op *op, int *r, int end) {
    while (*r < end && lr_strength(p, op, *r) == 0) ++*r;
    int n = 0;
    while (*r + n < end && lr_strength(p, op, *r + n) != 0) n++;
    return n;
}

// lr_expert is the matrix that row r uses at place k of its list.
INLINE int lr_expert(const gl_prog *p, const gl_op *op, int r, int k) {
    return op->i[2] ? ((const int32_t *)gl_row(p, &op->in[1], r))[k] : 0;
}

// lr_down fills the middle of rows [r, r+n): tile t of A·in, or all of A's row of the token.
INLINE void lr_down(const gl_prog *p, const gl_op *op, int r, int n, int k, int t, int tid) {
    const gl_weight *a = op->mats[0].w;
    if (op->i[1]) {
        for (int i = 0; i < n; i++)
            widen(a->type, a->data + p->tokens[r + i] * a->row_bytes, a->row_bytes, lr_mid(p, r + i), a->cols);
        return;
    }
    const float *x = gl_row(p, &op->in[0], r);
    if (op->in[0].width != a->cols) x += (int64_t)k * a->cols;
    KERNELS.mm[p->exact][op->i[3]](a, lr_expert(p, op, r, k), t, t + 1, x, op->in[0].stride, n, NULL,
                         lr_mid(p, r) + (int64_t)k * a->rows, p->mid_stride, p->scratch[tid]);
}

// lr_up adds tiles [t0, t1) of B·mid to rows [r, r+n).
INLINE void lr_up(const gl_prog *p, const gl_op *op, int r, int n, int k, int t0, int t1, int tid) {
    const gl_weight *b = op->mats[1].w;
    const int c0 = t0 * GL_TILE, c1 = t1 * GL_TILE < b->rows ? t1 * GL_TILE : b->rows, ys = LR_TILES * GL_TILE;
    float y[LR_ROWS * LR_TILES * GL_TILE];
    gl_weight part = *b; // rows [c0, c1) as a matrix of their own
    part.data += ((int64_t)lr_expert(p, op, r, k) * b->rows + c0) * b->row_bytes;
    part.rows = c1 - c0;
    KERNELS.mm[p->exact][op->i[4]](&part, 0, 0, t1 - t0, lr_mid(p, r) + (int64_t)k * b->cols, p->mid_stride, n, NULL, y, ys, p->scratch[tid]);
    for (int i = 0; i < n; i++) {
        v8f s = vset(lr_strength(p, op, r + i));
        float *out = gl_row(p, &op->out[0], r + i) + (int64_t)k * b->rows;
        for (int c = c0; c < c1; c += 8) vputn(out + c, vgetn(out + c, c1 - c) + vgetn(y + i * ys + c - c0, c1 - c) * s, c1 - c);
    }
}

// op_lowrank: i = {adapter, by token, top k or 0, layout of A, layout of B}, f = {factor},
// mats = {A, B}, in = {input, ids}. The interpreter leaves it out, barrier and all, when
// no row of the batch has a strength.
static void op_lowrank(const gl_prog *p, const gl_op *op, int tid) {
    const int n = gl_count(p, op->out[0].set), topk = op->i[2] ? op->i[2] : 1;
    const int block = op->i[2] ? 1 : LR_ROWS, blocks = (n + block - 1) / block;
    const int downs = op->i[1] ? 1 : op->mats[0].w->tiles, tiles = op->mats[1].w->tiles, ups = (tiles + LR_TILES - 1) / LR_TILES;
    int32_t *counter = p->counters + 16 * (op - p->ops);
    for (int up = 0; up < 2; up++) {
        const int per = up ? ups : downs;
        for (;;) {
            int64_t i = __atomic_fetch_add(counter + up, 1, __ATOMIC_RELAXED);
            if (i >= (int64_t)blocks * topk * per) break;
            const int t = (int)(i % per), k = (int)(i / per % topk), first = (int)(i / per / topk) * block;
            const int end = first + block < n ? first + block : n;
            for (int r = first, m; (m = lr_run(p, op, &r, end)) > 0; r += m) {
                if (!up) lr_down(p, op, r, m, k, t, tid);
                else lr_up(p, op, r, m, k, t * LR_TILES, (t + 1) * LR_TILES < tiles ? (t + 1) * LR_TILES : tiles, tid);
            }
        }
        if (!up) gl_barrier(p);
    }
}
