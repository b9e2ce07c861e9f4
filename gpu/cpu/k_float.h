// k_float.h: float activations in fast mode. F32, F16 and BF16 weights are read from
// the file's bytes as they stand, four rows at a time with fused multiply-add.
#include "cpu.h"
#include "numerics.h"

INLINE v8f f_load(const int type, const uint8_t *p, int64_t i) {
    if (type == GL_F16) return vhalf(p + 2 * i);
    if (type == GL_BF16) return vbf16(p + 2 * i);
    v8f v;
    memcpy(&v, p + 4 * i, 32);
    return v;
}

INLINE v8f f_part(const int type, const uint8_t *p, int64_t i, int n) {
    uint8_t t[32] = {0};
    const int size = type == GL_F32 ? 4 : 2;
    memcpy(t, p + size * i, (size_t)(size * n));
    return f_load(type, t, 0);
}

// f_dots computes nw weight rows times nr activation rows, eight lanes each.
INLINE void f_dots(const int type, const int nw, const int nr, const uint8_t *w, int64_t ws, const float *x, int64_t xs,
                   int cols, float *y /* [nr][nw] */) {
    v8f acc[4][3]; // fixed sizes: arrays of variable size stay in memory
UNROLL
    for (int a = 0; a < nw; a++)
UNROLL
        for (int r = 0; r < nr; r++) acc[a][r] = vset(0);
    int64_t i = 0;
    for (; i + 8 <= cols; i += 8) {
        v8f xv[3];
UNROLL
        for (int r = 0; r < nr; r++) xv[r] = vload(x + r * xs + i);
UNROLL
        for (int a = 0; a < nw; a++) {
            v8f v = f_load(type, w + a * ws, i);
UNROLL
            for (int r = 0; r < nr; r++) acc[a][r] = vfma(v, xv[r], acc[a][r]);
        }
    }
    if (i < cols)
UNROLL
        for (int a = 0; a < nw; a++)
UNROLL
            for (int r = 0; r < nr; r++)
                acc[a][r] = vfma(f_part(type, w + a * ws, i, (int)(cols - i)), vpart(x + r * xs + i, (int)(cols - i)), acc[a][r]);
UNROLL
    for (int a = 0; a < nw; a++)
UNROLL
        for (int r = 0; r < nr; r++) y[r * nw + a] = fold(acc[a][r], vset(0));
}

// f_rows multiplies weight rows [first, last), the first of which stands at data, by n
// activation rows.
INLINE void f_rows(const int type, const uint8_t *data, int64_t ws, int cols, int first, int last, const float *x, int64_t xs, int n,
                   const float *bias, float *y, int64_t ys) {
    for (int r = 0; r < n;) {
        int nr = n - r >= 3 ? 3 : n - r; // 12 sums, 3 inputs and a weight fill the registers
        for (int o = first; o < last;) {
            const uint8_t *p = data + (o - first) * ws;
            float t[12];
            int nw = last - o >= 4 ? 4 : 1;
            if (nw == 4 && nr == 3) f_dots(type, 4, 3, p, ws, x + r * xs, xs, cols, t);
            else if (nw == 4 && nr == 2) f_dots(type, 4, 2, p, ws, x + r * xs, xs, cols, t);
            else if (nw == 4) f_dots(type, 4, 1, p, ws, x + r * xs, xs, cols, t);
            else if (nr == 3) f_dots(type, 1, 3, p, ws, x + r * xs, xs, cols, t);
            else if (nr == 2) f_dots(type, 1, 2, p, ws, x + r * xs, xs, cols, t);
            else f_dots(type, 1, 1, p, ws, x + r * xs, xs, cols, t);
UNROLL
            for (int k = 0; k < nr; k++)
UNROLL
                for (int a = 0; a < nw; a++) y[(r + k) * ys + o + a] = t[k * nw + a] + (bias ? bias[o + a] : 0);
            o += nw;
        }
        r += nr;
    }
}

// A block of rows whose activations stay in the second cache while a tile of weights, widened
// once, passes them; fewer than this are multiplied by the halves as they stand.
enum { F_BLOCK = 48, F_MANY = 12 };

// f_widen makes floats of a row of halves.
INLINE void f_widen(const int type, const uint8_t *p, int cols, float *out) {
    int i = 0;
    for (; i + 8 <= cols; i += 8) vstore(out + i, f_load(type, p, i));
    if (i < cols) vstore(out + i, f_part(type, p, i, cols - i)); // rows of scratch end at a multiple of 16
}

INLINE void f_mm(const int type, const gl_weight *w, int expert, int t0, int t1, const float *x, int64_t xs, int n,
                 const float *bias, float *y, int64_t ys, float *scratch) {
    const uint8_t *data = w->data + (int64_t)expert * w->rows * w->row_bytes;
    const int last = t1 * GL_TILE < w->rows ? t1 * GL_TILE : w->rows;
    if (type == GL_F32 || n < F_MANY) {
        f_rows(type, data + (int64_t)t0 * GL_TILE * w->row_bytes, w->row_bytes, w->cols, t0 * GL_TILE, last, x, xs, n, bias, y, ys);
        return;
    }
    const int64_t width = (w->cols + 15) & ~15;
    for (int r = 0; r < n; r += F_BLOCK) {
        const int rows = n - r < F_BLOCK ? n - r : F_BLOCK;
        for (int o = t0 * GL_TILE; o < last; o += GL_TILE) {
            const int end = o + GL_TILE < last ? o + GL_TILE : last;
            for (int a = o; a < end; a++) f_widen(type, data + a * w->row_bytes, w->cols, scratch + (a - o) * width);
            f_rows(GL_F32, (const uint8_t *)scratch, 4 * width, w->cols, o, end, x + r * xs, xs, rows, bias, y + r * ys, ys);
        }
    }
}

#define F_MM(name, type)                                                                                               \
    static void name(const gl_weight *w, int expert, int t0, int t1, const void *x, int64_t xs, int n,                 \
                     const float *bias, float *y, int64_t ys, float *scratch) {                                        \
        f_mm(type, w, expert, t0, t1, x, xs, n, bias, y, ys, scratch);                                                 \
    }
F_MM(mm_f32, GL_F32)
F_MM(mm_f16, GL_F16)
F_MM(mm_bf16, GL_BF16)
