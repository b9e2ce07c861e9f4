// k_exact.h: products with F32, F16 and BF16 weights in exact mode (gpu/DESIGN.md, rule
// 1), straight from the file's bytes.
//
// The plain version widens a row to float32 in memory and multiplies it: a store and
// two loads per weight. What changed:
//  1. weights are widened in registers and multiplied at once;
//  2. a vector holds four columns of XR rows (one per 128 bits), so that four vectors
//     are the contract's 16 lanes, activations are a broadcast of 16 bytes, and the fold
//     is additions of whole vectors but for its last two steps;
//  3. several activation rows share a tile of eight widened rows, from which as many
//     sums as there are registers are made in one pass.
//
// Nothing is fused.
#include "cpu.h"
#include "simd.h"

// e_sink is where widened weights go: to a product with one activation row, or into a
// tile that many rows are multiplied with.
typedef struct {
    const float *x; // activations of the present column
    xf *tile;       // NULL: multiply. [4 column quads][cols/16][XS strips]
    int64_t quads;  // vectors between column quads of a tile
} e_sink;

enum { XS = GL_TILE / XR }; // strips of XR rows in a tile
enum { XT = NARROW ? 1 : XR == 4 ? 8 : 3 }; // activation rows that share a tile: the sums fill the registers

// e_put takes 16 columns of XR rows.
INLINE void e_put(const int dot, e_sink *s, const xf *w, xf *acc) {
    if (!dot) {
UNROLL
        for (int c = 0; c < 4; c++) s->tile[c * s->quads] = w[c];
        s->tile += XS;
        return;
    }
UNROLL
    for (int c = 0; c < 4; c++) {
        acc[c] = acc[c] + w[c] * xbc(s->x + 4 * c);
        PIN(acc[c]);
    }
    s->x += 16;
}

// e_plain widens 16 columns of F32, F16 or BF16 of the rows that stand at the given places
// after p; left < 16 columns are there at the end.
INLINE void e_plain(const int type, const int dot, const uint8_t *p, const int64_t *at, int left, e_sink *s, xf *acc) {
    const int size = type == T_F32 ? 4 : 2;
    float f[XR][16];
    xf w[4];
    for (int r = 0; r < XR; r++) {
        uint8_t t[64] = {0};
        const uint8_t *b = p + at[r];
        if (left < 16) memcpy(t, b, (size_t)(size * left)), b = t;
UNROLL
        for (int i = 0; i < 16; i += 8) vstore(f[r] + i, type == T_F32 ? vload((const float *)b + i) : type == T_F16 ? vhalf(b + 2 * i) : vbf16(b + 2 * i));
    }
UNROLL
    for (int c = 0; c < 4; c++) w[c] = xrowsf(&f[0][4 * c], 16);
    e_put(dot, s, w, acc);
}

// e_strip widens all columns of XR rows, of which the matrix may have fewer: its first row
// stands for those beyond, whose sums nobody reads.
INLINE void e_strip(const int type, const int dot, const uint8_t *p, int64_t ws, int rows, int cols, e_sink *s, xf *acc) {
    const int bytes = 16 * gl_block_bytes(type);
    int64_t at[XR];
UNROLL
    for (int r = 0; r < XR; r++) at[r] = r < rows ? r * ws : 0;
    int i = 0;
    for (; i + 16 <= cols; i += 16, p += bytes) {
        if (dot) // the strip after the next
            for (int r = 0; r < XR; r++) __builtin_prefetch(p + (2 * XR + r) * ws);
        e_plain(type, dot, p, at, 16, s, acc);
    }
    if (i < cols) { // zeros change no bit: a lane starts at +0 and never becomes -0
        float x[16] = {0};
        if (dot) memcpy(x, s->x, (size_t)(cols - i) * 4);
        s->x = x;
        e_plain(type, dot, p, at, cols - i, s, acc);
    }
}

// e_dots multiplies weight rows [o, last) with one activation row.
INLINE void e_dots(const int type, const uint8_t *p, int64_t ws, int o, int last, int cols, const float *x, const float *bias, float *y) {
    for (; o < last; o += XR, p += XR * ws) {
        xf acc[4] = {xset(0), xset(0), xset(0), xset(0)};
        e_sink s = {.x = x};
        e_strip(type, 1, p, ws, last - o, cols, &s, acc);
        float t[XR];
        xfold(acc, t);
        for (int a = 0; a < XR && o + a < last; a++) y[o + a] = bias ? t[a] + bias[o + a] : t[a];
    }
}

// e_rows multiplies a tile with nr activation rows: one quad of columns after the
// other, so that the sums of eight weight rows fit the registers.
INLINE void e_rows(const int nr, const xf *tile, int cols, const float *x, int64_t xs, float t[][GL_TILE]) {
    const int64_t quads = (cols + 15) / 16;
    xf part[XT][XS][4];
    for (int c = 0; c < 4; c++) {
        xf acc[XT][XS];
UNROLL
        for (int r = 0; r < nr; r++)
UNROLL
            for (int a = 0; a < XS; a++) acc[r][a] = xset(0);
        const xf *w = tile + c * quads * XS;
        const float *xc = x + 4 * c;
        for (int64_t k = 0; k < quads; k++, w += XS, xc += 16) {
            xf v[XT];
            if (k < cols / 16) {
UNROLL
                for (int r = 0; r < nr; r++) v[r] = xbc(xc + r * xs);
            } else {
                for (int r = 0; r < nr; r++) {
                    float p[4] = {0};
                    for (int i = 0; i < 4 && 16 * k + 4 * c + i < cols; i++) p[i] = xc[r * xs + i];
                    v[r] = xbc(p);
                }
            }
UNROLL
            for (int a = 0; a < XS; a++)
UNROLL
                for (int r = 0; r < nr; r++) {
                    acc[r][a] = acc[r][a] + w[a] * v[r];
                    PIN(acc[r][a]);
                }
        }
UNROLL
        for (int r = 0; r < nr; r++)
UNROLL
            for (int a = 0; a < XS; a++) part[r][a][c] = acc[r][a];
    }
    for (int r = 0; r < nr; r++)
        for (int a = 0; a < XS; a++) xfold(part[r][a], t[r] + XR * a);
}

// e_tile widens up to eight rows into scratch.
INLINE void e_tile(const int type, const uint8_t *p, int64_t ws, int rows, int cols, float *scratch) {
    xf none[4];
    for (int a = 0; a < XS; a++) {
        const int o = a * XR < rows ? a * XR : 0; // strips beyond the matrix: any will do
        e_sink s = {.tile = (xf *)scratch + a, .quads = (int64_t)(cols + 15) / 16 * XS};
        e_strip(type, 0, p + o * ws, ws, rows - o, cols, &s, none);
    }
}

static void e_many(const float *scratch, int cols, const float *x, int64_t xs, int n, int o, int rows, const float *bias, float *y, int64_t ys) {
    for (int r = 0; r < n; r += XT) {
        float t[XT][GL_TILE];
        const int nr = n - r < XT ? n - r : XT;
        if (nr == XT) {
            e_rows(XT, (const xf *)scratch, cols, x + r * xs, xs, t);
        } else {
            for (int k = 0; k < nr; k++) e_rows(1, (const xf *)scratch, cols, x + (r + k) * xs, xs, t + k);
        }
        for (int k = 0; k < nr; k++)
            for (int a = 0; a < rows; a++) y[(r + k) * ys + o + a] = bias ? t[k][a] + bias[o + a] : t[k][a];
    }
}

// E_MM defines the multiplication of one type.
#define E_MM(name, type)                                                                                               \
    static void name(const gl_weight *w, int expert, int t0, int t1, const void *xv, int64_t xs, int n,                \
                     const float *bias, float *y, int64_t ys, float *scratch) {                                        \
        const int64_t ws = w->row_bytes;                                                                               \
        const int last = t1 * GL_TILE < w->rows ? t1 * GL_TILE : w->rows;                                              \
        const float *x = xv;                                                                                           \
        int o = t0 * GL_TILE;                                                                                          \
        const uint8_t *p = w->data + ((int64_t)expert * w->rows + o) * ws;                                             \
        if (n == 1) e_dots(type, p, ws, o, last, w->cols, x, bias, y);                                                 \
        else                                                                                                           \
            for (; o < last; o += GL_TILE, p += GL_TILE * ws) {                                                        \
                const int rows = last - o < GL_TILE ? last - o : GL_TILE;                                              \
                e_tile(type, p, ws, rows, w->cols, scratch);                                                           \
                e_many(scratch, w->cols, x, xs, n, o, rows, bias, y, ys);                                              \
            }                                                                                                          \
    }

E_MM(me_f32, T_F32)
E_MM(me_f16, T_F16)
E_MM(me_bf16, T_BF16)
