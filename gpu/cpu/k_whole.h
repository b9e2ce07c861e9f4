// k_whole.h: packed weights times activations of whole numbers (exact mode, gpu/DESIGN.md,
// rule 2). It reads the tiles that fast mode reads.
//
// A sum over a group of columns has no rounding, so any instructions may make it. There
// are two ways, and each layout takes the one with fewer instructions:
//
//   bytes  X is three signed bytes, each multiplied with the codes as fast mode does it:
//          dot products of four bytes where the machine has them, for every layout;
//          otherwise vpmaddubsw with sums of 16 bits, for codes of up to 6 bits, that
//          vpmaddwd widens before they could overflow;
//   words  X is 4096·H + L; vpmaddwd multiplies codes of 16 bits with both halves.
//
// Either ends in two whole numbers below 2²⁴ with S = 4096·H + L, and the one rounding of
// the contract is that of this sum as floats, fused or not. Sums over blocks go to the
// contract's eight lanes, which are vectors of eight rows here and stay in the first-level
// cache.
#include "cpu.h"
#include "simd.h"

// x_offset is what stands in a tile beyond the code.
INLINE int x_offset(const int code) {
    return code == CODE_4 ? 4 : code == CODE_8 ? 8 : code == CODE_12 ? 12 : code == CODE_16 ? 16 : code == CODE_32 ? 32 : 0;
}

// x_norm makes S = 4096·hi + lo of digits' sums. small: lo stays below 2²⁴ as it is.
INLINE void x_norm(const int small, const v8i *s, int off, int zh, int zl, v8i *hi, v8i *lo) {
    *hi = (s[2] << 4) - vseti(off * zh);
    *lo = (s[1] << 8) + s[0] - vseti(off * zl);
    if (small) return;
    *hi += *lo >> 12;
    *lo &= 4095;
}

#if GL_DOT4
// x_sums makes the sums of one block: hi[h], lo[h] of half h, or all in half 0.
INLINE void x_sums(const int bits, const int code, const int8_t *lut, const int halves, const int nr, const uint8_t *q, const gl_wblk *x,
                   int64_t xs, v8i hi[][2], v8i lo[][2]) {
    const int off = code == CODE_SIGNED ? DOT_BIAS : x_offset(code);
    v8i s[4][2][3] = {};
UNROLL
    for (int i = 0; i < 4; i++) {
        vb a, b;
        q_pair(bits, lut, q, i, &a, &b);
        if (code == CODE_SIGNED && DOT_BIAS) a ^= 0x80, b ^= 0x80;
UNROLL
        for (int r = 0; r < nr; r++)
UNROLL
            for (int k = 0; k < 3; k++) {
                const int8_t *d = x[r * xs].d[k] + 4 * i;
                s[r][0][k] = vdot4(s[r][0][k], a, vbc(d));
                s[r][halves][k] = vdot4(s[r][halves][k], b, vbc(d + 16));
            }
    }
UNROLL
    for (int r = 0; r < nr; r++) {
        const gl_wblk *k = x + r * xs;
UNROLL
        for (int h = 0; h <= halves; h++)
            x_norm(0, s[r][h], off, k->zh[h] + (halves ? 0 : k->zh[1]), k->zl[h] + (halves ? 0 : k->zl[1]), &hi[r][h], &lo[r][h]);
    }
}
#else
// x_flush moves 16-bit sums to 32-bit ones.
INLINE void x_flush(v16s *t, v8i *s) {
    *s += vmadd(*t, (v16s){} + 1);
    *t = (v16s){};
}

INLINE void x_bytes(const int bits, const int code, const int8_t *lut, const int halves, const int nr, const uint8_t *q, const gl_wblk *x,
                    int64_t xs, v8i hi[][2], v8i lo[][2]) {
    // Products that fit 16 bits: 2·128·(2^bits − 1) each; the levels of MXFP4 need 5.
    const int wide = lut ? 5 : bits, room = wide <= 4 ? 8 : wide == 5 ? 4 : 2;
    v16s t[4][2][3] = {};
    v8i s[4][2][3] = {};
UNROLL
    for (int i = 0; i < 4; i++) {
        vb a, b;
        q_pair(bits, lut, q, i, &a, &b);
        const int flush = (i + 1) * (2 - halves) % room == 0 || i == 3;
UNROLL
        for (int r = 0; r < nr; r++)
UNROLL
            for (int k = 0; k < 3; k++) {
                const int8_t *d = x[r * xs].d[k] + 4 * i;
                t[r][0][k] += vdotus(a, vbc(d));
                PIN(t[r][0][k]);
                t[r][halves][k] += vdotus(b, vbc(d + 16));
                PIN(t[r][halves][k]);
                if (!flush) continue;
                x_flush(&t[r][0][k], &s[r][0][k]);
                if (halves) x_flush(&t[r][1][k], &s[r][1][k]);
            }
    }
UNROLL
    for (int r = 0; r < nr; r++) {
        const gl_wblk *k = x + r * xs;
UNROLL
        for (int h = 0; h <= halves; h++)
            x_norm(wide <= 4, s[r][h], x_offset(code), k->zh[h] + (halves ? 0 : k->zh[1]), k->zl[h] + (halves ? 0 : k->zl[1]), &hi[r][h], &lo[r][h]);
    }
}

// x_quad adds four columns to the sums of nr activation rows. Codes are signed bytes.
INLINE void x_quad(const int nr, const int g, const int h, vb v, const gl_wblk *x, int64_t xs, v8i hi[][2], v8i lo[][2]) {
    const v16s even = (v16s)((v16u)v << 8) >> 8, odd = (v16s)v >> 8;
UNROLL
    for (int r = 0; r < nr; r++) {
        const int16_t *w = x[r * xs].w[g];
        hi[r][h] += vmadd(even, (v16s)vbc(w)) + vmadd(odd, (v16s)vbc(w + 2));
        lo[r][h] += vmadd(even, (v16s)vbc(w + 4)) + vmadd(odd, (v16s)vbc(w + 6));
        PIN(hi[r][h]);
        PIN(lo[r][h]);
    }
}

// x_sums makes the sums of one block: hi[h], lo[h] of half h, or all in half 0.
INLINE void x_sums(const int bits, const int code, const int8_t *lut, const int halves, const int nr, const uint8_t *q, const gl_wblk *x,
                   int64_t xs, v8i hi[][2], v8i lo[][2]) {
    if (code != CODE_SIGNED) {
        x_bytes(bits, code, lut, halves, nr, q, x, xs, hi, lo);
        return;
    }
UNROLL
    for (int r = 0; r < nr; r++)
UNROLL
        for (int h = 0; h < 2; h++) hi[r][h] = lo[r][h] = (v8i){};
UNROLL
    for (int i = 0; i < 4; i++) {
        vb a, b;
        q_pair(bits, lut, q, i, &a, &b);
        x_quad(nr, i, 0, a, x, xs, hi, lo);
        x_quad(nr, i + 4, halves, b, x, xs, hi, lo);
    }
}
#endif

// x_term adds one group to a lane: t·(d·s), then z·(m·s) where there is a minimum.
INLINE void x_term(v8i hi, v8i lo, v8f d, const int min, v8f m, float s, float z, v8f *lane) {
    v8f t = xfma8(vcvt(hi), vset(4096), vcvt(lo));
    *lane = *lane + t * (d * vset(s));
    if (min) *lane = *lane + vset(z) * (m * vset(s));
}

// x_block adds one block of nr activation rows to a lane each. d, m: the scales and minima
// of the rows, by half of the block where halves differ.
INLINE void x_block(const int bits, const int code, const int8_t *lut, const int halves, const int min, const int nr, const uint8_t *q,
                    const gl_wblk *x, int64_t xs, const v8f *d, const v8f *m, v8f (*lanes)[GL_LANES]) {
    v8i hi[4][2], lo[4][2];
    x_sums(bits, code, lut, halves, nr, q, x, xs, hi, lo);
UNROLL
    for (int r = 0; r < nr; r++) {
        const gl_wblk *k = x + r * xs;
UNROLL
        for (int h = 0; h <= halves; h++) x_term(hi[r][h], lo[r][h], d[h], min, m[h], k->s, k->z[halves ? 1 + h : 0], lanes[r]);
    }
}

// x_scales reads the scales and minima of block j of a scale record.
INLINE void x_scales(const int scale, const uint8_t *sc, int j, v8f *d, v8f *m) {
    switch (scale) {
    case SC_H: d[0] = vhalf(sc); break;
    case SC_HM: d[0] = vhalf(sc), m[0] = vhalf(sc + 16); break;
    case SC_F: d[0] = vload((const float *)sc); break;
    case SC_F2: d[0] = vload((const float *)sc), d[1] = vload((const float *)sc + 8); break;
    case SC_KM:
        d[0] = vhalf(sc) * vcvt(vu8(sc + 32 + 8 * j));
        m[0] = (vset(0) - vhalf(sc + 16)) * vcvt(vu8(sc + 96 + 8 * j));
        break;
    case SC_K16:
        d[0] = vhalf(sc) * vcvt(vs8(sc + 16 + 16 * j));
        d[1] = vhalf(sc) * vcvt(vs8(sc + 24 + 16 * j));
        break;
    case SC_K16M: {
        v8i a = vu8(sc + 32 + 16 * j), b = vu8(sc + 40 + 16 * j);
        v8f m0 = vset(0) - vhalf(sc + 16);
        d[0] = vhalf(sc) * vcvt(a & 15), d[1] = vhalf(sc) * vcvt(b & 15);
        m[0] = m0 * vcvt(a >> 4), m[1] = m0 * vcvt(b >> 4);
        break;
    }
    case SC_K32: d[0] = vhalf(sc) * vcvt(vs8(sc + 16 + 8 * j)); break;
    }
}

// x_tile computes eight weight rows times nr activation rows.
INLINE void x_tile(const int bits, const int code, const int8_t *lut, const int scale, const int nr, const uint8_t *tile,
                   int nb, const gl_wblk *x, int64_t xs, v8f *sum) {
    const uint8_t *sc = tile, *q = tile + q_scale_bytes(scale, nb);
    const int super = scale >= SC_KM ? 8 : 1, halves = scale == SC_F2 || scale == SC_K16 || scale == SC_K16M;
    const int min = scale == SC_HM || scale == SC_KM || scale == SC_K16M;
    v8f lanes[4][GL_LANES];
UNROLL
    for (int r = 0; r < nr; r++)
UNROLL
        for (int l = 0; l < GL_LANES; l++) lanes[r][l] = vset(0);
    for (int b = 0; b < nb; b += super) {
        for (int j = 0; j < super; j++) {
            v8f d[2] = {}, m[2] = {};
            x_scales(scale, sc, j, d, m);
            if (nr == 1)
                for (int o = 0; o < 32 * bits + 32; o += 64) __builtin_prefetch(q + (bits == 8 ? 512 : 1024) + o);
            x_block(bits, code, lut, halves, min, nr, q, x + b + j, xs, d, m, (v8f(*)[GL_LANES])&lanes[0][(b + j) % GL_LANES]);
            q += 32 * bits;
        }
        sc += q_record(scale);
    }
UNROLL
    for (int r = 0; r < nr; r++) {
        v8f *l = lanes[r];
        sum[r] = ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
    }
}

INLINE void x_rows(const int bits, const int code, const int8_t *lut, const int scale, const int nr, const gl_weight *w,
                   int expert, int t0, int t1, const gl_wblk *x, int64_t xs, const float *bias, float *y, int64_t ys) {
    const uint8_t *tile = w->packed + ((int64_t)expert * w->tiles + t0) * w->tile_bytes;
    for (int t = t0; t < t1; t++, tile += w->tile_bytes) {
        v8f sum[4];
        x_tile(bits, code, lut, scale, nr, tile, w->cols / 32, x, xs, sum);
UNROLL
        for (int r = 0; r < nr; r++)
            q_store(y + r * ys + GL_TILE * t, bias ? bias + GL_TILE * t : NULL, w->rows - GL_TILE * t, sum[r]);
    }
}

// X_MM defines the multiplication of one layout.
#define X_MM(name, bits, code, lut, scale)                                                                             \
    static void name(const gl_weight *w, int expert, int t0, int t1, const void *xv, int64_t xs, int n,                \
                     const float *bias, float *y, int64_t ys, float *scratch) {                                        \
        const gl_wblk *x = xv;                                                                                         \
        (void)scratch;                                                                                                 \
        int r = 0;                                                                                                     \
        for (; !NARROW && r + 2 <= n; r += 2)                                                                          \
            x_rows(bits, code, lut, scale, 2, w, expert, t0, t1, x + r * xs, xs, bias, y + r * ys, ys);                \
        for (; r < n; r++)                                                                                             \
            x_rows(bits, code, lut, scale, 1, w, expert, t0, t1, x + r * xs, xs, bias, y + r * ys, ys);                \
    }

X_MM(mx_q8, 8, CODE_SIGNED, NULL, SC_H)
X_MM(mx_q8c, 8, CODE_SIGNED, NULL, SC_F2)
X_MM(mx_q4, 4, CODE_8, NULL, SC_H)
X_MM(mx_q4m, 4, CODE_0, NULL, SC_HM)
X_MM(mx_q5, 5, CODE_16, NULL, SC_H)
X_MM(mx_q5m, 5, CODE_0, NULL, SC_HM)
X_MM(mx_q2k, 2, CODE_0, NULL, SC_K16M)
X_MM(mx_q3k, 3, CODE_4, NULL, SC_K16)
X_MM(mx_q4k, 4, CODE_0, NULL, SC_KM)
X_MM(mx_q5k, 5, CODE_0, NULL, SC_KM)
X_MM(mx_q6k, 6, CODE_32, NULL, SC_K16)
X_MM(mx_nl4, 4, CODE_SIGNED, levels_nl, SC_H)
X_MM(mx_xs4, 4, CODE_SIGNED, levels_nl, SC_K32)
X_MM(mx_mx4, 4, CODE_12, levels_mx12, SC_F)

// x_split stores the digits and halves of a block's numbers v.
INLINE void x_split(const v8i *v, gl_wblk *k) {
#if GL_AVX2
    const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    const __m256i lanes = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); // packs work in 128-bit halves
    __m256i d[3][4];
    for (int i = 0; i < 4; i++) {
        const v8i h = (v[i] + 2048) >> 12;
        d[0][i] = (__m256i)((v8i)((v8u)v[i] << 24) >> 24);
        d[1][i] = (__m256i)((v8i)((v8u)(v[i] + 128) << 16) >> 24);
        d[2][i] = (__m256i)((v[i] + 32896) >> 16);
        __m256i w = _mm256_shuffle_epi8(_mm256_packs_epi32((__m256i)h, (__m256i)(v[i] - (h << 12))), order);
        _mm256_storeu_si256((__m256i *)k->w[2 * i], w);
    }
    for (int i = 0; i < 3; i++) {
        __m256i b = _mm256_packs_epi16(_mm256_packs_epi32(d[i][0], d[i][1]), _mm256_packs_epi32(d[i][2], d[i][3]));
        _mm256_storeu_si256((__m256i *)k->d[i], _mm256_permutevar8x32_epi32(b, lanes));
    }
#else
    for (int i = 0; i < 32; i++) {
        const int32_t n = v[i / 8][i % 8], h = (n + 2048) >> 12;
        k->d[0][i] = (int8_t)n, k->d[1][i] = (int8_t)((n + 128) >> 8), k->d[2][i] = (int8_t)((n + 32896) >> 16);
        k->w[i / 4][0 + 2 * (i & 1) + (i >> 1 & 1)] = (int16_t)h;
        k->w[i / 4][4 + 2 * (i & 1) + (i >> 1 & 1)] = (int16_t)(n - (h << 12));
    }
#endif
}

// x_round is ops.RoundBlock of n = 32·m activations.
static void x_round(const float *x, int n, gl_wblk *k) {
    const v8f magic = vset(12582912.0f); // 1.5·2²³: a sum's bits count whole numbers
    for (; n > 0; n -= 32, x += 32, k++) {
        const int32_t e = vtop(vmaxi(vmaxi((v8i)vabs(vload(x)), (v8i)vabs(vload(x + 8))),
                                     vmaxi((v8i)vabs(vload(x + 16)), (v8i)vabs(vload(x + 24))))) >> 23;
        const int32_t scale = e == 255 ? 0x7fc00000 : e < 67 ? 0 : (e - 21) << 23;
        v8i v[4] = {};
        memcpy(&k->s, &scale, 4);
        for (int i = 0; e >= 67 && e < 255 && i < 4; i++) v[i] = (v8i)(vload(x + 8 * i) * (v8f)vseti((275 - e) << 23) + magic) - (v8i)magic;
        x_split(v, k);
        const int32_t z[2] = {vsum(v[0] + v[1]), vsum(v[2] + v[3])};
        for (int h = 0; h < 2; h++) k->z[1 + h] = (float)z[h], k->zh[h] = z[h] >> 12, k->zl[h] = z[h] & 4095;
        k->z[0] = (float)(z[0] + z[1]);
    }
}
