// k_exact.h: matrix products in exact mode (gpu/DESIGN.md, rules 1 and 2), straight
// from the file's bytes.
//
// The plain version widens a row to float32 in memory and multiplies it: a store and
// two loads per weight, and a decoder that works byte by byte. What changed:
//  1. weights are widened in registers and multiplied at once;
//  2. a vector holds four columns of XR rows (one per 128 bits), so that four vectors
//     are the contract's 16 lanes, codes become floats by two interleaves with
//     constants instead of a widening and a conversion, activations are a broadcast of
//     16 bytes, and the fold is additions of whole vectors but for its last two steps;
//  3. several activation rows share a tile of eight widened rows, from which as many
//     sums as there are registers are made in one pass.
//
// Fused multiply-add appears where it changes no bit: a code times its scale has at
// most 24 significant bits in every format (11 of the half, 6 or 7 of the group's
// scale, the code's), so that the product is exact and the one rounding left is that
// of the sum, as in tensor.Dequantize. The products with activations are never fused.
#include "cpu.h"
#include "simd.h"

// A code byte c becomes the float 128 + c (c < 128) or 32768 + c, whose bits are a
// constant beside the byte; e_scale takes that back: (f − base)·d.
enum { BASE7 = 128, BASE8 = 32768 };

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

// e_floats turns 16 code bytes of each row into base + code, four columns a vector.
INLINE void e_floats(const int base, xb q, xf *f) {
    const xb zero = {0}, c43 = (xb){0} + 0x43;
    const xw c47 = (xw){0} + 0x4700;
    if (base == BASE7) {
        xw lo = (xw)xlo8(q, c43), hi = (xw)xhi8(q, c43); // 0x43cc, then 0x43cc0000
        f[0] = (xf)xlo16((xw)zero, lo), f[1] = (xf)xhi16((xw)zero, lo);
        f[2] = (xf)xlo16((xw)zero, hi), f[3] = (xf)xhi16((xw)zero, hi);
    } else {
        xw lo = (xw)xlo8(zero, q), hi = (xw)xhi8(zero, q); // 0xcc00, then 0x4700cc00
        f[0] = (xf)xlo16(lo, c47), f[1] = (xf)xhi16(lo, c47);
        f[2] = (xf)xlo16(hi, c47), f[3] = (xf)xhi16(hi, c47);
    }
}

// e_half widens 16 columns whose weights are d·(code − off). It must be so that
// d·(base + off) and d·code are exact.
INLINE void e_half(const int dot, e_sink *s, xf *acc, const int base, const int off, xb q, xf d) {
    xf w[4];
    e_floats(base, q, w);
#if GL_FMA
    xf c = xset(-(float)(base + off)) * d;
UNROLL
    for (int i = 0; i < 4; i++) w[i] = xfma(w[i], d, c);
#else
UNROLL
    for (int i = 0; i < 4; i++) w[i] = (w[i] - xset((float)(base + off))) * d;
#endif
    e_put(dot, s, w, acc);
}

// e_wide is e_half for scales with more bits or exponents than it may have.
INLINE void e_wide(const int dot, e_sink *s, xf *acc, const int base, const int off, xb q, xf d) {
    xf w[4];
    e_floats(base, q, w);
UNROLL
    for (int i = 0; i < 4; i++) w[i] = (w[i] - xset((float)(base + off))) * d;
    e_put(dot, s, w, acc);
}

// e_min widens 16 columns whose weights are d·code + m, d·code exact.
INLINE void e_min(const int dot, e_sink *s, xf *acc, xb q, xf d, xf m) {
    xf w[4];
    e_floats(BASE7, q, w);
UNROLL
    for (int i = 0; i < 4; i++) w[i] = xfma(w[i] - xset(BASE7), d, m);
    e_put(dot, s, w, acc);
}

// e_fifths spreads bits 16·half… of the 32 at byte at of a block to bit 4 of 16 bytes.
INLINE xb e_fifths(const uint8_t *p, int64_t ws, const int at, const int half) {
    static const uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    static const uint8_t byte[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    xb mask = xrows(bit, 0), h = xpick(xrows(p, ws), xrows(byte, 0) + (uint8_t)(at + 2 * half));
    return (xb)((h & mask) == mask) & 16;
}

// e_32 widens one block of 32 columns of XR rows, ws bytes apart.
INLINE void e_32(const int type, const int dot, const uint8_t *p, int64_t ws, e_sink *s, xf *acc) {
    static const uint8_t nl[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241}; // levels + 128
    static const uint8_t mx[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};                // levels + 12
    if (type == T_Q8_0) {
        xf d = xhalves(p, ws);
        e_half(dot, s, acc, BASE8, 128, xrows(p + 2, ws) ^ 0x80, d);
        e_half(dot, s, acc, BASE8, 128, xrows(p + 18, ws) ^ 0x80, d);
        return;
    }
    if (type == T_CODES) {
        float d[XR][2];
        for (int r = 0; r < XR; r++) memcpy(d[r], p + r * ws, 8);
        e_wide(dot, s, acc, BASE8, 128, xrows(p + 8, ws) ^ 0x80, xper(&d[0][0], 2));
        e_wide(dot, s, acc, BASE8, 128, xrows(p + 24, ws) ^ 0x80, xper(&d[0][1], 2));
        return;
    }
    const int at = type == T_Q4_1 ? 4 : type == T_Q5_0 ? 6 : type == T_Q5_1 ? 8 : type == T_MXFP4 ? 1 : 2;
    xb n = xrows(p + at, ws), lo = n & 15, hi = xshr(n, 4) & 15;
    if (type == T_Q5_0 || type == T_Q5_1) lo |= e_fifths(p, ws, at - 4, 0), hi |= e_fifths(p, ws, at - 4, 1);
    if (type == T_MXFP4) {
        float d[XR];
        for (int r = 0; r < XR; r++) d[r] = e8m0(p[r * ws]);
        e_wide(dot, s, acc, BASE7, 12, xpick(xrows(mx, 0), lo), xper(d, 1));
        e_wide(dot, s, acc, BASE7, 12, xpick(xrows(mx, 0), hi), xper(d, 1));
        return;
    }
    xf d = xhalves(p, ws);
    if (type == T_Q4_1 || type == T_Q5_1) {
        xf m = xhalves(p + 2, ws);
        e_min(dot, s, acc, lo, d, m);
        e_min(dot, s, acc, hi, d, m);
    } else if (type == T_IQ4_NL) {
        e_half(dot, s, acc, BASE8, 128, xpick(xrows(nl, 0), lo), d);
        e_half(dot, s, acc, BASE8, 128, xpick(xrows(nl, 0), hi), d);
    } else {
        e_half(dot, s, acc, BASE7, type == T_Q4_0 ? 8 : 16, lo, d);
        e_half(dot, s, acc, BASE7, type == T_Q4_0 ? 8 : 16, hi, d);
    }
}

// e_scales gives the scale of each group of a super-block of one row, and less its
// minimum where the format has one: 8 groups of 32 or 16 groups of 16.
INLINE void e_scales(const int type, const uint8_t *p, float *sc, float *mn) {
    uint8_t a[16], b[16];
    switch (type) {
    case T_Q4_K: case T_Q5_K: {
        uint32_t s0 = u32(p + 4), s1 = u32(p + 8), s2 = u32(p + 12), v[4];
        v[0] = s0 & 0x3f3f3f3f, v[1] = (s2 & 0x0f0f0f0f) | (s0 >> 6 & 0x03030303) << 4;
        v[2] = s1 & 0x3f3f3f3f, v[3] = (s2 >> 4 & 0x0f0f0f0f) | (s1 >> 6 & 0x03030303) << 4;
        memcpy(a, v, 16);
        vstore(sc, vset(half1f(p)) * vcvt(vu8(a)));
        vstore(mn, vset(-half1f(p + 2)) * vcvt(vu8(a + 8)));
        return;
    }
    case T_Q2_K: {
        for (int g = 0; g < 16; g++) a[g] = p[g] & 15, b[g] = p[g] >> 4;
        v8f d = vset(half1f(p + 80)), m = vset(-half1f(p + 82));
        vstore(sc, d * vcvt(vu8(a)));
        vstore(sc + 8, d * vcvt(vu8(a + 8)));
        vstore(mn, m * vcvt(vu8(b)));
        vstore(mn + 8, m * vcvt(vu8(b + 8)));
        return;
    }
    case T_Q3_K: {
        uint32_t s0 = u32(p + 96), s1 = u32(p + 100), h = u32(p + 104), v[4];
        v[0] = (s0 & 0x0f0f0f0f) | (h & 0x03030303) << 4, v[1] = (s1 & 0x0f0f0f0f) | (h >> 2 & 0x03030303) << 4;
        v[2] = (s0 >> 4 & 0x0f0f0f0f) | (h >> 4 & 0x03030303) << 4, v[3] = (s1 >> 4 & 0x0f0f0f0f) | (h >> 6 & 0x03030303) << 4;
        memcpy(a, v, 16);
        v8f d = vset(half1f(p + 108));
        vstore(sc, d * vcvt(vu8(a) - 32));
        vstore(sc + 8, d * vcvt(vu8(a + 8) - 32));
        return;
    }
    case T_IQ4_XS:
        for (int g = 0; g < 8; g++) a[g] = (uint8_t)((p[4 + g / 2] >> (4 * (g % 2)) & 15) | (u16(p + 2) >> (2 * g) & 3) << 4);
        vstore(sc, vset(half1f(p)) * vcvt(vu8(a) - 32));
        return;
    default: { // Q6_K
        v8f d = vset(half1f(p + 208));
        vstore(sc, d * vcvt(vs8(p + 192)));
        vstore(sc + 8, d * vcvt(vs8(p + 200)));
    }
    }
}

// e_256 widens one super-block of XR rows.
INLINE void e_256(const int type, const int dot, const uint8_t *p, int64_t ws, e_sink *s, xf *acc) {
    static const uint8_t nl[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
    float sc[XR][16], mn[XR][16];
    for (int r = 0; r < XR; r++) e_scales(type, p + r * ws, sc[r], mn[r]);
    for (int g = 0; g < 8; g++) { // groups of 32; not unrolled: the code would be eight times as long
        xf d = xper(&sc[0][g], 16), m = d;
        if (type == T_Q4_K || type == T_Q5_K) m = xper(&mn[0][g], 16);
UNROLL
        for (int h = 0; h < 2; h++) { // of 16
            xb q;
            if (type == T_Q2_K || type == T_Q3_K || type == T_Q6_K) d = xper(&sc[0][2 * g + h], 16);
            switch (type) {
            case T_Q4_K: case T_Q5_K:
                q = xshr(xrows(p + (type == T_Q5_K ? 48 : 16) + 32 * (g / 2) + 16 * h, ws), 4 * (g % 2)) & 15;
                if (type == T_Q5_K) q |= xshl(xshr(xrows(p + 16 + 16 * h, ws), g) & 1, 4);
                e_min(dot, s, acc, q, d, m);
                break;
            case T_Q2_K:
                q = xshr(xrows(p + 16 + 32 * (g / 4) + 16 * h, ws), 2 * (g % 4)) & 3;
                e_min(dot, s, acc, q, d, xper(&mn[0][2 * g + h], 16));
                break;
            case T_Q3_K:
                q = xshr(xrows(p + 32 + 32 * (g / 4) + 16 * h, ws), 2 * (g % 4)) & 3;
                q |= xshl(xshr(xrows(p + 16 * h, ws), g) & 1, 2);
                e_half(dot, s, acc, BASE7, 4, q, d);
                break;
            case T_IQ4_XS: // a group's 16 bytes hold its first half low, its second high
                q = xshr(xrows(p + 8 + 16 * g, ws), 4 * h) & 15;
                e_wide(dot, s, acc, BASE8, 128, xpick(xrows(nl, 0), q), d);
                break;
            default: // Q6_K
                q = xshr(xrows(p + 64 * (g / 4) + 32 * (g % 2) + 16 * h, ws), 4 * (g / 2 % 2)) & 15;
                q |= xshl(xshr(xrows(p + 128 + 32 * (g / 4) + 16 * h, ws), 2 * (g % 4)) & 3, 4);
                e_half(dot, s, acc, BASE7, 32, q, d);
            }
        }
    }
}

// e_plain widens 16 columns of F32, F16 or BF16; left < 16 are there at the end.
INLINE void e_plain(const int type, const int dot, const uint8_t *p, int64_t ws, int left, e_sink *s, xf *acc) {
    const int size = type == T_F32 ? 4 : 2;
    float f[XR][16];
    xf w[4];
    for (int r = 0; r < XR; r++) {
        uint8_t t[64] = {0};
        const uint8_t *b = p + r * ws;
        if (left < 16) memcpy(t, b, (size_t)(size * left)), b = t;
UNROLL
        for (int i = 0; i < 16; i += 8) vstore(f[r] + i, type == T_F32 ? vload((const float *)b + i) : type == T_F16 ? vhalf(b + 2 * i) : vbf16(b + 2 * i));
    }
UNROLL
    for (int c = 0; c < 4; c++) w[c] = xrowsf(&f[0][4 * c], 16);
    e_put(dot, s, w, acc);
}

// e_strip widens all columns of XR rows.
INLINE void e_strip(const int type, const int dot, const uint8_t *p, int64_t ws, int cols, e_sink *s, xf *acc) {
    const int size = gl_block_cols(type) == 1 ? 16 : gl_block_cols(type), bytes = size / gl_block_cols(type) * gl_block_bytes(type);
    int i = 0;
    for (; i + size <= cols; i += size, p += bytes) {
        if (dot) // the strip after the next
            for (int r = 0; r < XR; r++)
                for (int o = 0; o < bytes; o += 64) __builtin_prefetch(p + (2 * XR + r) * ws + o);
        if (size == 16) e_plain(type, dot, p, ws, 16, s, acc);
        else if (size == 32) e_32(type, dot, p, ws, s, acc);
        else e_256(type, dot, p, ws, s, acc);
    }
    if (size == 16 && i < cols) { //; zeros change no bit: a lane starts at +0 and never becomes -0
        float x[16] = {0};
        if (dot) memcpy(x, s->x, (size_t)(cols - i) * 4);
        s->x = x;
        e_plain(type, dot, p, ws, cols - i, s, acc);
    }
}

// e_dots multiplies weight rows [o, last) with one activation row.
INLINE void e_dots(const int type, const uint8_t *p, int64_t ws, int o, int last, int cols, const float *x, const float *bias, float *y) {
    for (; o < last; o += XR, p += XR * ws) {
        xf acc[4] = {xset(0), xset(0), xset(0), xset(0)};
        e_sink s = {.x = x};
        e_strip(type, 1, p, last - o >= XR ? ws : 0, cols, &s, acc); // a last row alone stands for all of its strip
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
        const int o = a * XR < rows ? a * XR : 0; // rows beyond the matrix: any will do
        e_sink s = {.tile = (xf *)scratch + a, .quads = (int64_t)(cols + 15) / 16 * XS};
        e_strip(type, 0, p + o * ws, rows - o >= XR ? ws : 0, cols, &s, none);
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
#define E_MM(type)                                                                                                     \
    static void e_##type(const gl_weight *w, const uint8_t *p, int64_t ws, int o, int last, const float *x, int64_t xs,    \
                         int n, const float *bias, float *y, int64_t ys, float *scratch) {                             \
        if (n == 1) e_dots(type, p, ws, o, last, w->cols, x, bias, y);                                                \
        else                                                                                                           \
            for (; o < last; o += GL_TILE, p += GL_TILE * ws) {                                                        \
                const int rows = last - o < GL_TILE ? last - o : GL_TILE;                                              \
                e_tile(type, p, ws, rows, w->cols, scratch);                                                           \
                e_many(scratch, w->cols, x, xs, n, o, rows, bias, y, ys);                                              \
            }                                                                                                          \
    }

#define E_TYPES(F)                                                                                                     \
    F(T_F32) F(T_F16) F(T_BF16) F(T_Q4_0) F(T_Q4_1) F(T_Q5_0) F(T_Q5_1) F(T_Q8_0) F(T_Q2_K) F(T_Q3_K) F(T_Q4_K)        \
    F(T_Q5_K) F(T_Q6_K) F(T_IQ4_NL) F(T_IQ4_XS) F(T_MXFP4) F(T_CODES)
E_TYPES(E_MM)

static void mm_exact(const gl_weight *w, int expert, int t0, int t1, const void *x, int64_t xs, int n, const float *bias,
                     float *y, int64_t ys, float *scratch) {
    const int o = t0 * GL_TILE, last = t1 * GL_TILE < w->rows ? t1 * GL_TILE : w->rows;
    const int type = w->packed ? T_CODES : w->type;
    const int64_t ws = w->packed ? w->tile_bytes / GL_TILE : w->row_bytes;
    const uint8_t *p = (w->packed ? w->packed : w->data) + ((int64_t)expert * w->rows + o) * ws;
    switch (type) {
#define E_CASE(type) case type: e_##type(w, p, ws, o, last, x, xs, n, bias, y, ys, scratch); break;
    E_TYPES(E_CASE)
#undef E_CASE
    }
}
