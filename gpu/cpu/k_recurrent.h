// k_recurrent.h: operations with state (gpu/DESIGN.md, rule 10). Rows go one after
// another; threads take channels or heads, which do not touch each other's state.
#include "cpu.h"
#include "numerics.h"

// s_state is the state of a row's slot: mem[0] is [slots][floats], i[7] the floats.
INLINE float *s_state(const gl_prog *p, const gl_op *op, int r) { return (float *)op->mem[0] + (int64_t)p->slot[r] * op->i[7]; }

INLINE void s_share(const gl_prog *p, int n, int tid, int *from, int *to) {
    *from = (int)((int64_t)n * tid / p->threads);
    *to = (int)((int64_t)n * (tid + 1) / p->threads);
}

// op_shortconv: i = {kernel width, act}, vec = {kernel [channels][K], bias}. The state
// holds the last K−1 inputs, oldest first.
static void op_shortconv(const gl_prog *p, const gl_op *op, int tid) {
    const int k = op->i[0], channels = op->in[0].width;
    int c0, c1;
    s_share(p, channels, tid, &c0, &c1);
    for (int r = 0; r < p->rows; r++) {
        const float *x = gl_row(p, &op->in[0], r);
        float *y = gl_row(p, &op->out[0], r), *s = s_state(p, op, r);
        for (int c = c0; c < c1; c++) {
            const float *w = op->vec[0] + (int64_t)c * k;
            float sum = 0, now = x[c];
            for (int j = 0; j < k - 1; j++) {
                if (p->pos[r] == 0) s[j * channels + c] = 0;
                sum = sum + w[j] * s[j * channels + c];
            }
            sum = sum + w[k - 1] * now;
            if (op->vec[1]) sum = sum + op->vec[1][c];
            y[c] = act1(op->i[1], sum);
            for (int j = 0; j < k - 2; j++) s[j * channels + c] = s[(j + 1) * channels + c];
            if (k > 1) s[(k - 2) * channels + c] = now;
        }
    }
}

// op_mamba1: i = {N}, in = {x, dt, B, C}, vec = {A [channels][N], D}.
static void op_mamba1(const gl_prog *p, const gl_op *op, int tid) {
    const int n = op->i[0];
    int c0, c1;
    s_share(p, op->in[0].width, tid, &c0, &c1);
    for (int r = 0; r < p->rows; r++) {
        const float *x = gl_row(p, &op->in[0], r), *dt = gl_row(p, &op->in[1], r);
        const float *b = gl_row(p, &op->in[2], r), *c = gl_row(p, &op->in[3], r);
        float *y = gl_row(p, &op->out[0], r);
        for (int ch = c0; ch < c1; ch++) {
            float *h = s_state(p, op, r) + (int64_t)ch * n;
            const float *a = op->vec[0] + (int64_t)ch * n, step = dt[ch], in = x[ch];
            if (p->pos[r] == 0) memset(h, 0, (size_t)n * 4);
            v8f u = vset(step * in);
            for (int i = 0; i < n; i += 8) {
                v8f decay = nexp(vset(step) * vgetn(a + i, n - i));
                vputn(h + i, decay * vgetn(h + i, n - i) + vgetn(b + i, n - i) * u, n - i);
            }
            y[ch] = ndot(h, c, n) + op->vec[1][ch] * in;
        }
    }
}

// op_mamba2: i = {N, heads, groups}, in = {x, dt, B, C}, vec = {A, D}.
static void op_mamba2(const gl_prog *p, const gl_op *op, int tid) {
    const int n = op->i[0], heads = op->i[1], width = op->in[0].width / heads;
    int h0, h1;
    s_share(p, heads, tid, &h0, &h1);
    for (int r = 0; r < p->rows; r++) {
        const float *x = gl_row(p, &op->in[0], r), *dt = gl_row(p, &op->in[1], r);
        float *y = gl_row(p, &op->out[0], r);
        for (int h = h0; h < h1; h++) {
            int g = h / (heads / op->i[2]);
            const float *b = gl_row(p, &op->in[2], r) + (int64_t)g * n, *c = gl_row(p, &op->in[3], r) + (int64_t)g * n;
            const float step = dt[h];
            v8f decay = vset(exp1(step * op->vec[0][h]));
            for (int i = h * width; i < (h + 1) * width; i++) {
                float *m = s_state(p, op, r) + (int64_t)i * n, in = x[i];
                if (p->pos[r] == 0) memset(m, 0, (size_t)n * 4);
                v8f u = vset(step * in);
                for (int j = 0; j < n; j += 8) vputn(m + j, decay * vgetn(m + j, n - j) + vgetn(b + j, n - j) * u, n - j);
                y[i] = ndot(m, c, n) + op->vec[1][h] * in;
            }
        }
    }
}

// op_gateddelta: i = {K heads, V heads, width}, f = {scale}, in = {q, k, v, gate,
// beta}. The state holds Mᵀ: [V heads][value][key].
static void op_gateddelta(const gl_prog *p, const gl_op *op, int tid) {
    const int n = op->i[2];
    int h0, h1;
    s_share(p, op->i[1], tid, &h0, &h1);
    for (int r = 0; r < p->rows; r++)
        for (int h = h0; h < h1; h++) {
            int kh = h % op->i[0];
            const float *q = gl_row(p, &op->in[0], r) + (int64_t)kh * n, *k = gl_row(p, &op->in[1], r) + (int64_t)kh * n;
            const float *v = gl_row(p, &op->in[2], r) + (int64_t)h * n;
            float *y = gl_row(p, &op->out[0], r) + (int64_t)h * n, beta = gl_row(p, &op->in[4], r)[h];
            v8f decay = vset(exp1(gl_row(p, &op->in[3], r)[h]));
            for (int j = 0; j < n; j++) {
                float *m = s_state(p, op, r) + ((int64_t)h * n + j) * n;
                if (p->pos[r] == 0) memset(m, 0, (size_t)n * 4);
                for (int i = 0; i < n; i += 8) vputn(m + i, vgetn(m + i, n - i) * decay, n - i);
                float value = v[j];
                v8f delta = vset(beta * (value - ndot(m, k, n)));
                for (int i = 0; i < n; i += 8) vputn(m + i, vgetn(m + i, n - i) + vgetn(k + i, n - i) * delta, n - i);
                y[j] = ndot(m, q, n) * op->f[0];
            }
        }
}
