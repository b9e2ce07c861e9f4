// k_elementwise.h: operations without a reduction over rows, and norms. They follow
// the contract of exact mode in both modes, except that GELU is rounded to halves in
// exact mode alone; they are a percent of a token.
#include "cpu.h"
#include "numerics.h"

// r_rows is the share of n rows of a thread: equal ranges, or all for thread 0 when
// there are few.
INLINE void r_rows(const gl_prog *p, int n, int tid, int *from, int *to) {
    if (n < 2 * p->threads) {
        *from = 0;
        *to = tid == 0 ? n : 0;
    } else {
        *from = (int)((int64_t)n * tid / p->threads);
        *to = (int)((int64_t)n * (tid + 1) / p->threads);
    }
}

// r_part is the part of an operation that a thread computes: rows [r0, r1) and
// columns [c0, c1).
typedef struct {
    int r0, r1, c0, c1;
} r_part;

INLINE r_part r_split(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = {0, gl_count(p, op->out[0].set), 0, op->out[0].width};
    if (op->by == GL_BY_COL) {
        int units = (s.c1 + 15) / 16;
        s.c0 = (int)((int64_t)units * tid / p->threads) * 16;
        int end = (int)((int64_t)units * (tid + 1) / p->threads) * 16;
        s.c1 = end < s.c1 ? end : s.c1;
    } else {
        r_rows(p, s.r1, tid, &s.r0, &s.r1);
    }
    return s;
}

static void op_embed(const gl_prog *p, const gl_op *op, int tid) {
    int r0, r1;
    r_rows(p, p->rows, tid, &r0, &r1);
    for (int r = r0; r < r1; r++) {
        float *y = gl_row(p, &op->out[0], r);
        int64_t index = op->i[0] ? p->pos[r] : p->tokens[r];
        if (index < 0 && op->out[0].width == p->embed_width) {
            memcpy(y, p->embeds + (int64_t)r * p->embed_stride, (size_t)p->embed_width * 4);
            continue;
        }
        if (index < 0) index = 0; // the padding token
        widen(op->w->type, op->w->data + index * op->w->row_bytes, op->w->row_bytes, y, op->w->cols);
        if (op->f[0] != 1)
            for (int i = 0; i < op->w->cols; i += 8) vputn(y + i, vgetn(y + i, op->w->cols - i) * vset(op->f[0]), op->w->cols - i);
    }
}

// op_deepstack: i = {slice}. Rows with a token stay as they are.
static void op_deepstack(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++) {
        const float *x = gl_row(p, &op->in[0], r);
        float *y = gl_row(p, &op->out[0], r);
        const int row = gl_batch_row(p, &op->in[0], r);
        if (p->tokens[row] >= 0) {
            if (x != y) memcpy(y, x, (size_t)s.c1 * 4);
            continue;
        }
        const float *e = p->embeds + (int64_t)row * p->embed_stride + (int64_t)op->i[0] * p->embed_width;
        for (int i = 0; i < s.c1; i += 8) vputn(y + i, vgetn(x + i, s.c1 - i) + vgetn(e + i, s.c1 - i), s.c1 - i);
    }
}

static void op_rows(const gl_prog *p, const gl_op *op, int tid) {
    int r0, r1;
    r_rows(p, p->nouts, tid, &r0, &r1);
    for (int r = r0; r < r1; r++)
        memcpy(gl_row(p, &op->out[0], r), gl_row(p, &op->in[0], p->outs[r]), (size_t)op->out[0].width * 4);
}

static void op_quant(const gl_prog *p, const gl_op *op, int tid) {
    int r0, r1;
    r_rows(p, gl_count(p, op->in[0].set), tid, &r0, &r1);
    for (int r = r0; r < r1; r++) {
        const float *x = gl_row(p, &op->in[0], r);
        uint8_t *out = p->quant + r * p->quant_stride * p->quant_bytes;
        if (p->exact) x_round(x, op->in[0].width, (gl_wblk *)out);
        else quantise(x, op->in[0].width, (gl_qblk *)out);
    }
}

// n_weight is the weight of group c of a norm: one group's, or one per column.
INLINE const float *n_weight(const float *w, int32_t len, int group, int c) { return w && len != group ? w + c : w; }

// op_rmsnorm: i = {group, length of the weight}, f = {eps, 1/group}.
static void op_rmsnorm(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    const int group = op->i[0];
    for (int r = s.r0; r < s.r1; r++)
        for (int c = 0; c < s.c1; c += group) {
            const float *x = gl_row(p, &op->in[0], r) + c, *w = n_weight(op->vec[0], op->i[1], group, c);
            float *y = gl_row(p, &op->out[0], r) + c;
            v8f k = vset(rsqrt1(ndot(x, x, group) * op->f[1] + op->f[0]));
            for (int i = 0; i < group; i += 8) {
                v8f v = vgetn(x + i, group - i) * k;
                if (w) v = v * vgetn(w + i, group - i);
                vputn(y + i, v, group - i);
            }
        }
}

// op_layernorm: i = {group, length of the weight, length of the bias}.
static void op_layernorm(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    const int group = op->i[0];
    for (int r = s.r0; r < s.r1; r++)
        for (int c = 0; c < s.c1; c += group) {
            const float *x = gl_row(p, &op->in[0], r) + c, *w = n_weight(op->vec[0], op->i[1], group, c);
            const float *b = n_weight(op->vec[1], op->i[2], group, c);
            float *y = gl_row(p, &op->out[0], r) + c;
            v8f mean = vset(nsum(x, group) * op->f[1]);
            for (int i = 0; i < group; i += 8) vputn(y + i, vgetn(x + i, group - i) - mean, group - i);
            v8f k = vset(rsqrt1(ndot(y, y, group) * op->f[1] + op->f[0]));
            for (int i = 0; i < group; i += 8) {
                v8f v = vgetn(y + i, group - i) * k;
                if (w) v = v * vgetn(w + i, group - i);
                if (b) v = v + vgetn(b + i, group - i);
                vputn(y + i, v, group - i);
            }
        }
}

static void op_l2norm(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    const int group = op->i[0];
    for (int r = s.r0; r < s.r1; r++)
        for (int c = 0; c < s.c1; c += group) {
            const float *x = gl_row(p, &op->in[0], r) + c;
            float *y = gl_row(p, &op->out[0], r) + c;
            v8f k = vset(rsqrt1(ndot(x, x, group) + op->f[0]));
            for (int i = 0; i < group; i += 8) vputn(y + i, vgetn(x + i, group - i) * k, group - i);
        }
}

// e_combine is a + b or a·b over n columns.
INLINE void e_combine(int mul, const float *a, const float *b, float *y, int n) {
    for (int i = 0; i < n; i += 8) {
        v8f u = vgetn(a + i, n - i), v = vgetn(b + i, n - i);
        vputn(y + i, mul ? u * v : u + v, n - i);
    }
}

// e_repeat combines columns [c0, c1) of a with b repeated every bn columns.
INLINE void e_repeat(int mul, const float *a, const float *b, int bn, float *y, int c0, int c1) {
    if (bn == 1) {
        for (int i = c0; i < c1; i += 8) {
            v8f u = vgetn(a + i, c1 - i);
            vputn(y + i, mul ? u * vset(b[0]) : u + vset(b[0]), c1 - i);
        }
        return;
    }
    for (int i = c0; i < c1;) {
        int n = bn - i % bn < c1 - i ? bn - i % bn : c1 - i;
        e_combine(mul, a + i, b + i % bn, y + i, n);
        i += n;
    }
}

// op_binary: i = {multiply}.
static void op_binary(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++)
        e_repeat(op->i[0], gl_row(p, &op->in[0], r), gl_row(p, &op->in[1], r), op->in[1].width, gl_row(p, &op->out[0], r), s.c0, s.c1);
}

// op_addvec: i = {multiply, length of the vector}.
static void op_addvec(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++)
        e_repeat(op->i[0], gl_row(p, &op->in[0], r), op->vec[0], op->i[1], gl_row(p, &op->out[0], r), s.c0, s.c1);
}

INLINE v8f e_clamp(v8f x, float c) {
    x = vsel(x < vset(-c), vset(-c), x);
    return vsel(x > vset(c), vset(c), x);
}

// op_scale: f = {factor, offset, clamp}.
static void op_scale(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++) {
        const float *x = gl_row(p, &op->in[0], r);
        float *y = gl_row(p, &op->out[0], r);
        for (int i = s.c0; i < s.c1; i += 8) {
            v8f v = vgetn(x + i, s.c1 - i) * vset(op->f[0]) + vset(op->f[1]);
            vputn(y + i, op->f[2] > 0 ? e_clamp(v, op->f[2]) : v, s.c1 - i);
        }
    }
}

// E_ACT runs body with a constant activation function A, so that each has its loop.
#define E_ACT(act, body)                                                                                               \
    switch (act) {                                                                                                     \
        case ACT_SILU: { enum { A = ACT_SILU }; body } break;                                                          \
        case ACT_GELU: { enum { A = ACT_GELU }; body } break;                                                          \
        case ACT_GELUHALF: { enum { A = ACT_GELUHALF }; body } break;                                                  \
        case ACT_GELUERF: { enum { A = ACT_GELUERF }; body } break;                                                    \
        case ACT_GELUQUICK: { enum { A = ACT_GELUQUICK }; body } break;                                                \
        case ACT_RELU: { enum { A = ACT_RELU }; body } break;                                                          \
        case ACT_RELU2: { enum { A = ACT_RELU2 }; body } break;                                                        \
        case ACT_SIGMOID: { enum { A = ACT_SIGMOID }; body } break;                                                    \
        case ACT_TANH: { enum { A = ACT_TANH }; body } break;                                                          \
        case ACT_SOFTPLUS: { enum { A = ACT_SOFTPLUS }; body } break;                                                  \
        case ACT_EXP: { enum { A = ACT_EXP }; body } break;                                                            \
        default: { enum { A = ACT_IDENTITY }; body } break;                                                            \
    }

static void e_act(int act, const float *x, float *y, int n) {
    E_ACT(act, for (int i = 0; i < n; i += 8) vputn(y + i, nact(A, vgetn(x + i, n - i)), n - i);)
}

// op_unary: i = {act}.
static void op_unary(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++)
        e_act(op->i[0], gl_row(p, &op->in[0], r) + s.c0, gl_row(p, &op->out[0], r) + s.c0, s.c1 - s.c0);
}

// e_glu: i[0] is the act, f = {limit, alpha, offset of up}.
static void e_glu(const gl_op *op, const float *gate, const float *up, float *y, int n) {
    const float limit = op->f[0], alpha = op->f[1];
    const v8f offset = vset(op->f[2]);
    if (limit > 0 || alpha > 0) {
        for (int i = 0; i < n; i += 8) {
            v8f g = vgetn(gate + i, n - i), u = vgetn(up + i, n - i);
            if (limit > 0) {
                g = vsel(g > vset(limit), vset(limit), g);
                u = e_clamp(u, limit);
            }
            if (alpha > 0) g = g * nsigmoid(vset(alpha) * g);
            else E_ACT(op->i[0], g = nact(A, g);)
            vputn(y + i, g * (u + offset), n - i);
        }
        return;
    }
    E_ACT(op->i[0], for (int i = 0; i < n; i += 8)
        vputn(y + i, nact(A, vgetn(gate + i, n - i)) * (vgetn(up + i, n - i) + offset), n - i);)
}

static void op_glu(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++)
        e_glu(op, gl_row(p, &op->in[0], r) + s.c0, gl_row(p, &op->in[1], r) + s.c0, gl_row(p, &op->out[0], r) + s.c0, s.c1 - s.c0);
}

// op_softcap: f = {cap, 1/cap}.
static void op_softcap(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++) {
        const float *x = gl_row(p, &op->in[0], r);
        float *y = gl_row(p, &op->out[0], r);
        for (int i = s.c0; i < s.c1; i += 8)
            vputn(y + i, ntanh(vgetn(x + i, s.c1 - i) * vset(op->f[1])) * vset(op->f[0]), s.c1 - i);
    }
}

// op_posscale: i = {number of the operation among its kind, rows per number}.
static void op_posscale(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    for (int r = s.r0; r < s.r1; r++) {
        const float *x = gl_row(p, &op->in[0], r);
        float *y = gl_row(p, &op->out[0], r);
        v8f f = vset(p->pos_scale[(int64_t)op->i[0] * op->i[1] + gl_batch_row(p, &op->in[0], r)]);
        for (int i = s.c0; i < s.c1; i += 8) vputn(y + i, vgetn(x + i, s.c1 - i) * f, s.c1 - i);
    }
}

// e_turn gathers cos and sin of a row whose pairs turn by positions on several axes.
static void e_turn(const gl_op *op, const int32_t *rotary, float *cos, float *sin) {
    const uint8_t *axes = op->mem[0];
    const int half = op->i[2];
    for (int i = 0; i < half; i++) {
        const int64_t at = (int64_t)rotary[axes[i]] * half + i;
        cos[i] = op->vec[0][at], sin[i] = op->vec[1][at];
    }
}

// op_rope: i = {head width, first column, half, neox}, vec = {cos, sin}, mem = {axes}.
static void op_rope(const gl_prog *p, const gl_op *op, int tid) {
    r_part s = r_split(p, op, tid);
    const int half = op->i[2];
    for (int r = s.r0; r < s.r1; r++) {
        const float *x = gl_row(p, &op->in[0], r);
        float *y = gl_row(p, &op->out[0], r);
        if (x != y) memcpy(y, x, (size_t)s.c1 * 4);
        const int row = gl_batch_row(p, &op->in[0], r);
        const float *cos = op->vec[0] + (int64_t)p->pos[row] * half, *sin = op->vec[1] + (int64_t)p->pos[row] * half;
        if (op->mem[0] && p->rotary) {
            float *turn = p->scratch[tid];
            e_turn(op, p->rotary + (int64_t)row * GL_AXES, turn, turn + half);
            cos = turn, sin = turn + half;
        }
        for (float *h = y + op->i[1]; h < y + s.c1; h += op->i[0]) {
            if (!op->i[3]) {
                for (int i = 0; i < half; i++) {
                    float a = h[2 * i], b = h[2 * i + 1];
                    h[2 * i] = a * cos[i] - b * sin[i];
                    h[2 * i + 1] = a * sin[i] + b * cos[i];
                }
                continue;
            }
            for (int i = 0; i < half; i += 8) {
                int n = half - i;
                v8f a = vgetn(h + i, n), b = vgetn(h + half + i, n), c = vgetn(cos + i, n), d = vgetn(sin + i, n);
                vputn(h + i, a * c - b * d, n);
                vputn(h + half + i, a * d + b * c, n);
            }
        }
    }
}

// kv_quantise is ops.QuantizeKV.
static void kv_quantise(const float *x, int n, int8_t *q, void *scale) {
    v8i largest = vseti(0); // magnitudes as bits: NaN is above all
    for (int i = 0; i < n; i += 8) largest = vmaxi(largest, (v8i)vgetn(x + i, n - i) & 0x7fffffff);
    int32_t bits = largest[0];
    for (int k = 1; k < 8; k++) bits = largest[k] > bits ? largest[k] : bits;
    float d, inverse = 0;
    memcpy(&d, &bits, 4);
    const uint16_t h = tohalf1(d * (1.0f / 127.0f));
    memcpy(scale, &h, 2);
    d = half1(h);
    if (d != 0) inverse = recip1(d);
    const v8f magic = vset(12582912.0f);
    for (int i = 0; i < n; i += 8) {
        v8f s = vgetn(x + i, n - i) * vset(inverse);
        s = vsel(s > vset(127), vset(127), vsel(s < vset(-127), vset(-127), s)) + magic;
        v8i v = (v8i)s - (v8i)magic;
        for (int k = 0; k < 8 && i + k < n; k++) q[i + k] = (int8_t)v[k];
    }
}

// kv_put stores the key or value of one head in a cell of its page.
static void kv_put(const gl_prog *p, uint8_t *cell, const float *x, int n) {
    int i = 0;
    switch (p->kv_type) {
    case GL_KV_F32: memcpy(cell, x, (size_t)n * 4); return;
    case GL_KV_F16:
        for (; i + 8 <= n; i += 8) vtohalf(cell + 2 * i, vload(x + i));
        for (; i < n; i++) {
            uint16_t h = tohalf1(x[i]);
            memcpy(cell + 2 * i, &h, 2);
        }
        return;
    }
    for (; i < n; i += GL_KV_BLOCK)
        kv_quantise(x + i, n - i < GL_KV_BLOCK ? n - i : GL_KV_BLOCK, (int8_t *)cell + i, cell + n + i / GL_KV_BLOCK * 2);
}

// A cache is [pages][KV heads][GL_PAGE][head width] in the cache's type, so that one
// head's positions are a stream within a page and a page is one piece of memory.
// op_kvstore: i = {KV heads, key width, value width, group}.
static void op_kvstore(const gl_prog *p, const gl_op *op, int tid) {
    int r0, r1;
    r_rows(p, p->rows, tid, &r0, &r1);
    const int heads = op->i[0], kd = op->i[1], vd = op->i[2];
    const int64_t kb = gl_kv_bytes(p->kv_type, kd), vb = gl_kv_bytes(p->kv_type, vd);
    for (int r = r0; r < r1; r++) {
        int64_t page = gl_table(p, op->i[3], p->slot[r])[p->pos[r] / GL_PAGE];
        for (int h = 0; h < heads; h++) {
            int64_t cell = (page * heads + h) * GL_PAGE + p->pos[r] % GL_PAGE;
            kv_put(p, (uint8_t *)op->mem[0] + cell * kb, gl_row(p, &op->in[0], r) + (int64_t)h * kd, kd);
            kv_put(p, (uint8_t *)op->mem[1] + cell * vb, gl_row(p, &op->in[1], r) + (int64_t)h * vd, vd);
        }
    }
}
