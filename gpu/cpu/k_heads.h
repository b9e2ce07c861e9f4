// k_heads.h: matrix products over a program's weights, and what is read back of the
// logits (best token, log-sum-exp, best K) while they are still in cache.
#include "cpu.h"
#include "numerics.h"

static const gl_kernels KERNELS;

static void m_chunk(const gl_prog *p, const gl_op *op, const gl_mat *m, int t0, int t1, int n, int tid) {
    const void *x = p->quant;
    int64_t xs = p->quant_stride;
    if (m->w->layout < GL_Q8) x = gl_row(p, &op->in[0], 0), xs = op->in[0].stride;
    KERNELS.mm[p->exact][m->w->layout](m->w, 0, t0, t1, x, xs, n, m->bias, gl_row(p, &m->out, 0), m->out.stride, p->scratch[tid]);
}

// op_matmul multiplies a group of matrices with one input. i = {fused GLU}: mats are
// then gate and up, chunks cover both, and the chunk's columns are combined at once.
static void op_matmul(const gl_prog *p, const gl_op *op, int tid) {
    const int n = gl_count(p, op->in[0].set);
    if (n == 0) return;
    int32_t *counter = p->counters + 16 * (op - p->ops);
    for (;;) {
        int i = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        if (i >= op->nchunks || gl_stopped(p)) break;
        gl_chunk c = op->chunks[i];
        if (!op->i[0]) {
            m_chunk(p, op, &op->mats[c.mat], c.t0, c.t1, n, tid);
            continue;
        }
        m_chunk(p, op, &op->mats[0], c.t0, c.t1, n, tid);
        m_chunk(p, op, &op->mats[1], c.t0, c.t1, n, tid);
        int c0 = c.t0 * GL_TILE, c1 = c.t1 * GL_TILE < op->out[0].width ? c.t1 * GL_TILE : op->out[0].width;
        for (int r = 0; r < n; r++)
            e_glu(op + 1, gl_row(p, &op->mats[0].out, r) + c0, gl_row(p, &op->mats[1].out, r) + c0, gl_row(p, &op->out[0], r) + c0, c1 - c0);
    }
}

static void op_none(const gl_prog *p, const gl_op *op, int tid) { (void)p, (void)op, (void)tid; }

INLINE int h_any(v8i m) {
#if GL_AVX2
    return _mm256_movemask_ps((__m256)m);
#else
    int a = 0;
    for (int i = 0; i < 8; i++) a |= m[i];
    return a;
#endif
}

// h_best scans ids [from, to) for the largest logit, lowest id first, and for the
// first that is not finite.
static void h_best(const float *row, int from, int to, float *max, int32_t *best, int32_t *bad) {
    v8f top = vset(-__builtin_inff());
    v8i at = vseti(from), id = (v8i){0, 1, 2, 3, 4, 5, 6, 7} + from, odd = vseti(0);
    int i = from;
    for (; i + 8 <= to; i += 8, id += 8) {
        v8f x = vload(row + i);
        v8i m = x > top;
        odd |= ((v8i)x & 0x7f800000) == vseti(0x7f800000);
        top = vsel(m, x, top);
        at = (m & id) | (~m & at);
    }
    *max = top[0], *best = at[0], *bad = -1;
    for (int k = 1; k < 8; k++)
        if (top[k] > *max || (top[k] == *max && at[k] < *best)) *max = top[k], *best = at[k];
    for (; i < to; i++) {
        int32_t bits;
        memcpy(&bits, row + i, 4);
        if ((bits & 0x7f800000) == 0x7f800000) odd |= 1;
        if (row[i] > *max) *max = row[i], *best = i;
    }
    if (!h_any(odd != vseti(0))) return;
    for (i = from; i < to && *bad < 0; i++)
        if (!(row[i] - row[i] == 0)) *bad = i;
}

// h_sift restores a heap whose root is the worst of the kept: the smallest logit, of
// equals the largest id.
static void h_sift(int32_t *ids, float *v, int n, int i) {
    for (;;) {
        int c = 2 * i + 1;
        if (c >= n) return;
        if (c + 1 < n && (v[c + 1] < v[c] || (v[c + 1] == v[c] && ids[c + 1] > ids[c]))) c++;
        if (v[i] < v[c] || (v[i] == v[c] && ids[i] > ids[c])) return;
        float f = v[i];
        int32_t t = ids[i];
        v[i] = v[c], ids[i] = ids[c];
        v[c] = f, ids[c] = t;
        i = c;
    }
}

static void h_top(const float *row, int n, gl_head *h) {
    int k = h->k;
    for (int i = 0; i < k; i++) h->ids[i] = i, h->logits[i] = row[i];
    for (int i = k / 2 - 1; i >= 0; i--) h_sift(h->ids, h->logits, k, i);
    for (int i = k; i < n;) {
        if (n - i >= 8 && !h_any(vload(row + i) > vset(h->logits[0]))) {
            i += 8;
            continue;
        }
        int end = n - i >= 8 ? i + 8 : n;
        for (; i < end; i++)
            if (row[i] > h->logits[0]) {
                h->logits[0] = row[i], h->ids[0] = i;
                h_sift(h->ids, h->logits, k, 0);
            }
    }
    for (int m = k - 1; m > 0; m--) { // heap sort: the worst goes to the end
        float f = h->logits[0];
        int32_t t = h->ids[0];
        h->logits[0] = h->logits[m], h->ids[0] = h->ids[m];
        h->logits[m] = f, h->ids[m] = t;
        h_sift(h->ids, h->logits, m, 0);
    }
}

// op_heads reads the logits back (rule 9). head_part holds per output and thread
// {max, best, bad}, then per output the sums of the blocks of 1,024 ids.
static void op_heads(const gl_prog *p, const gl_op *op, int tid) {
    const int vocab = op->in[0].width, blocks = (vocab + GL_LSE - 1) / GL_LSE, T = p->threads;
    const int b0 = (int)((int64_t)blocks * tid / T), b1 = (int)((int64_t)blocks * (tid + 1) / T);
    for (int o = 0; o < p->nouts; o++) {
        float *part = p->head_part + (int64_t)o * (3 * T + blocks) + 3 * tid;
        int32_t best = 0, bad = -1;
        part[0] = -__builtin_inff();
        int to = b1 * GL_LSE < vocab ? b1 * GL_LSE : vocab;
        if (b0 < b1) h_best(gl_row(p, &op->in[0], o), b0 * GL_LSE, to, part, &best, &bad);
        memcpy(part + 1, &best, 4);
        memcpy(part + 2, &bad, 4);
    }
    gl_barrier(p);
    for (int o = 0; o < p->nouts; o++) {
        float *part = p->head_part + (int64_t)o * (3 * T + blocks), *sums = part + 3 * T;
        const float *row = gl_row(p, &op->in[0], o);
        float max = -__builtin_inff();
        for (int t = 0; t < T; t++) max = part[3 * t] > max ? part[3 * t] : max;
        for (int b = b0; b < b1; b++) {
            float e[GL_LSE];
            int n = vocab - b * GL_LSE < GL_LSE ? vocab - b * GL_LSE : GL_LSE;
            for (int i = 0; i < n; i += 8) vputn(e + i, nexp(vgetn(row + b * GL_LSE + i, n - i) - vset(max)), n - i);
            sums[b] = nsum(e, n);
        }
    }
    gl_barrier(p);
    for (int o = tid; o < p->nouts; o += T) {
        const float *part = p->head_part + (int64_t)o * (3 * T + blocks), *sums = part + 3 * T;
        gl_head *h = p->heads + o;
        h->max = -__builtin_inff(), h->best = 0, h->bad = -1;
        for (int t = 0; t < T; t++) {
            int32_t bad;
            memcpy(&bad, part + 3 * t + 2, 4);
            if (part[3 * t] > h->max) h->max = part[3 * t], memcpy(&h->best, part + 3 * t + 1, 4);
            if (h->bad < 0) h->bad = bad;
        }
        float sum = 0;
        for (int b = 0; b < blocks; b++) sum = sum + sums[b];
        h->lse = h->max + ln1(sum);
        if (h->k > 0 && h->bad < 0) h_top(gl_row(p, &op->in[0], o), vocab, h);
    }
}
