// k_quant.h: packed weights times 8-bit activations (fast mode).
//
// The plain version widens a weight row and runs a float dot product: 4 bytes of
// cache traffic per weight and one multiply-add per lane. What changed, in order:
//  1. activations as signed bytes with a scale per 32 (gl_qblk), products by
//     vpmaddubsw: 32 products per instruction instead of 8;
//  2. eight rows interleaved so that a 32-bit lane holds four consecutive k of one
//     row: the activations are a broadcast, sums stay in their row's lane, and no
//     horizontal addition is left; scales of eight rows are one vector;
//  3. offsets (Q5_0's 16, Q6_K's 32) start the 16-bit sum instead of correcting it, so
//     that the sum of a whole block fits 16 bits and one vpmaddwd per block is enough;
//  4. four activation rows per pass over the weights, so that unpacking is paid once;
//  5. prefetch ahead of the stream when there is one activation row.
// Figures stand in doc.go. Every activation row goes through the same instructions in
// the same order whatever the number of rows, so its result does not depend on it.
#include "cpu.h"
#include "simd.h"

enum { SC_H, SC_HM, SC_F, SC_F2, SC_KM, SC_K16, SC_K16M, SC_K32 };
enum { CODE_0, CODE_4, CODE_8, CODE_12, CODE_16, CODE_32, CODE_SIGNED }; // what is subtracted

enum { NARROW = !GL_AVX2 && !GL_NEON }; // one row at a time: a quarter of the code

static const int8_t levels_nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t levels_mx[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
static const int8_t levels_mx12[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}; // less 12

// q_record is the size of one scale record.
INLINE int q_record(const int scale) {
    return scale == SC_H ? 16 : scale == SC_HM || scale == SC_F ? 32 : scale == SC_F2 ? 64 : scale == SC_K16 ? 144 : scale == SC_K32 ? 80 : 160;
}

// q_scale_bytes is the size of a tile's scales, before the quants.
INLINE int64_t q_scale_bytes(const int scale, int nb) {
    return ((int64_t)q_record(scale) * (scale >= SC_KM ? nb / 8 : nb) + 63) & ~(int64_t)63;
}

// q_pair unpacks the quants of k 4i…4i+3 (lo) and 16+4i…16+4i+3 (hi) of eight rows.
INLINE void q_pair(const int bits, const int8_t *lut, const uint8_t *q, const int i, vb *lo, vb *hi) {
    if (bits == 8) {
        *lo = vloadb(q + 32 * i);
        *hi = vloadb(q + 128 + 32 * i);
        return;
    }
    if (bits <= 3) {
        *lo = vshr(vloadb(q), 2 * i) & vsetb(3);
        *hi = vshr(vloadb(q + 32), 2 * i) & vsetb(3);
        if (bits == 3) {
            vb h = vloadb(q + 64);
            *lo |= (i < 2 ? vshl(h, 2 - i) : vshr(h, i - 2)) & vsetb(4);
            *hi |= vshr(h, i + 2) & vsetb(4);
        }
        return;
    }
    vb n = vloadb(q + 32 * i);
    *lo = n & vsetb(15);
    *hi = vshr(n, 4) & vsetb(15);
    if (bits == 5) {
        vb h = vloadb(q + 128);
        *lo |= vshl(h, 4 - i) & vsetb(16);
        *hi |= vshr(h, i) & vsetb(16);
    } else if (bits == 6) {
        vb a = vloadb(q + 128), b = vloadb(q + 160);
        *lo |= (i < 2 ? vshl(a, 4 - 2 * i) : vshr(a, 2 * i - 4)) & vsetb(48);
        *hi |= (i < 2 ? vshl(b, 4 - 2 * i) : vshr(b, 2 * i - 4)) & vsetb(48);
    }
    if (lut) {
        *lo = vlut((const uint8_t *)lut, *lo);
        *hi = vlut((const uint8_t *)lut, *hi);
    }
}

// q_dup spreads 8 signed bytes to both 16-bit halves of the 32-bit lanes.
INLINE v16s q_dup(v8i t) { return (v16s)((t & 0xffff) | (v8i)((v8u)t << 16)); }

#if GL_DOT4
// q_sums is the whole-number part of q_block with dot products of four bytes: the sums
// start at what the codes' offset takes away, and the result is the same number.
INLINE void q_sums(const int bits, const int code, const int8_t *lut, const int wide, const int nr, const uint8_t *q,
                   const gl_qblk *x, int64_t xs, const v16s *s, v8i *sum, v8i *sum2) {
    const int off = code == CODE_4 ? 4 : code == CODE_8 ? 8 : code == CODE_16 ? 16 : code == CODE_32 ? 32 : code == CODE_SIGNED ? DOT_BIAS : 0;
UNROLL
    for (int r = 0; r < nr; r++) {
        const int16_t *c = x[r * xs].c;
        sum[r] = vseti(-off * (c[0] + c[1]));
        sum2[r] = vseti(-off * (c[2] + c[3]));
    }
UNROLL
    for (int i = 0; i < 4; i++) {
        vb a, b;
        q_pair(bits, lut, q, i, &a, &b);
        if (code == CODE_SIGNED && DOT_BIAS) a ^= 0x80, b ^= 0x80;
UNROLL
        for (int r = 0; r < nr; r++) {
            sum[r] = vdot4(sum[r], a, vbc(x[r * xs].q + 4 * i));
            sum2[r] = vdot4(sum2[r], b, vbc(x[r * xs].q + 16 + 4 * i));
        }
    }
    if (wide == 2) return; // the halves have float scales
UNROLL
    for (int r = 0; r < nr; r++) {
        // Scales stand twice in a lane, as q_dup leaves them.
        if (wide) sum[r] = sum[r] * ((v8i)s[0] >> 16) + sum2[r] * ((v8i)s[1] >> 16);
        else sum[r] += sum2[r];
    }
}
#else
// q_sums is the whole-number part of q_block.
INLINE void q_sums(const int bits, const int code, const int8_t *lut, const int wide, const int nr, const uint8_t *q,
                   const gl_qblk *x, int64_t xs, const v16s *s, v8i *sum, v8i *sum2) {
    const v16s ones = (v16s){} + 1;
    v16s lo[4], hi[4]; // fixed sizes: arrays of variable size stay in memory
UNROLL
    for (int r = 0; r < nr; r++) {
        const gl_qblk *b = x + r * xs;
        sum[r] = sum2[r] = (v8i){};
        lo[r] = hi[r] = (v16s){};
        if (code == CODE_8) lo[r] = (v16s)vbc(b->t8);
        if (code == CODE_16) lo[r] = (v16s)vbc(b->t16);
        if (code == CODE_32) lo[r] = (v16s)vbc(b->c32), hi[r] = (v16s)vbc(b->c32 + 2);
        if (code == CODE_4) lo[r] = -((v16s)vbc(b->c) << 2), hi[r] = -((v16s)vbc(b->c + 2) << 2);
    }
UNROLL
    for (int i = 0; i < 4; i++) {
        vb a, b;
        q_pair(bits, lut, q, i, &a, &b);
UNROLL
        for (int r = 0; r < nr; r++) {
            vb xa = vbc(x[r * xs].q + 4 * i), xb = vbc(x[r * xs].q + 16 + 4 * i);
            if (code == CODE_SIGNED) {
                sum[r] += vmadd(vdotss(a, xa), ones);
                PIN(sum[r]);
                if (wide == 2) {
                    sum2[r] += vmadd(vdotss(b, xb), ones);
                    PIN(sum2[r]);
                } else {
                    sum[r] += vmadd(vdotss(b, xb), ones);
                    PIN(sum[r]);
                }
            } else if (wide) {
                lo[r] += vdotus(a, xa);
                hi[r] += vdotus(b, xb);
                PIN(lo[r]);
                PIN(hi[r]);
            } else {
                lo[r] += vdotus(a, xa);
                lo[r] += vdotus(b, xb);
                PIN(lo[r]);
            }
        }
    }
UNROLL
    for (int r = 0; r < nr; r++) {
        if (wide == 1) sum[r] = vmadd(lo[r], s[0]) + vmadd(hi[r], s[1]);
        else if (code != CODE_SIGNED) sum[r] = vmadd(lo[r], ones);
    }
}
#endif

// q_block adds one block of 32 k of nr activation rows to acc. d, m: scale and
// minimum of the rows, or the scales of the two halves (SC_F2); s, mn: the scales and minima of the two halves.
INLINE void q_block(const int bits, const int code, const int8_t *lut, const int scale, const int nr, const uint8_t *q,
                    const gl_qblk *x, int64_t xs, v8f d, v8f m, const v16s *s, const v16s *mn, v8f *acc) {
    v8i sum[4], sum2[4];
    q_sums(bits, code, lut, scale == SC_F2 ? 2 : scale == SC_K16 || scale == SC_K16M, nr, q, x, xs, s, sum, sum2);
UNROLL
    for (int r = 0; r < nr; r++) {
        const gl_qblk *b = x + r * xs;
        v8f xd = vset(b->d);
        acc[r] = vfma(vcvt(sum[r]), d * xd, acc[r]);
        if (scale == SC_F2) acc[r] = vfma(vcvt(sum2[r]), m * xd, acc[r]);
        if (scale == SC_HM || scale == SC_KM) acc[r] = vfma(m, vset(b->s), acc[r]);
        if (scale == SC_K16M) {
            v8i t = vmadd((v16s)vbc(b->c), mn[0]) + vmadd((v16s)vbc(b->c + 2), mn[1]);
            acc[r] = vfma(vcvt(t), m * xd, acc[r]);
        }
    }
}

// q_tile computes eight weight rows times nr activation rows.
INLINE void q_tile(const int bits, const int code, const int8_t *lut, const int scale, const int nr, const uint8_t *tile,
                   int nb, const gl_qblk *x, int64_t xs, v8f *acc) {
    const uint8_t *sc = tile, *q = tile + q_scale_bytes(scale, nb);
    const int super = scale >= SC_KM ? 8 : 1;
    const v8f off = vset(code == CODE_16 ? 16.0f : 0.0f); // what the minimum must add back
UNROLL
    for (int r = 0; r < nr; r++) acc[r] = vset(0);
    for (int b = 0; b < nb; b += super) {
        v8f d = vset(0), m = vset(0), d0 = vset(0), m0 = vset(0);
        v16s s[2] = {}, mn[2] = {};
        if (scale >= SC_KM) d0 = vhalf(sc);
        if (scale == SC_KM || scale == SC_K16M) m0 = vset(0) - vhalf(sc + 16);
        for (int j = 0; j < super; j++) {
            switch (scale) {
            case SC_H: d = vhalf(sc); break;
            case SC_HM: d = vhalf(sc), m = vfma(off, d, vhalf(sc + 16)); break;
            case SC_F: d = vload((const float *)sc); break;
            case SC_F2: d = vload((const float *)sc), m = vload((const float *)sc + 8); break;
            case SC_KM:
                d = d0 * vcvt(vu8(sc + 32 + 8 * j));
                m = vfma(off, d, m0 * vcvt(vu8(sc + 96 + 8 * j)));
                break;
            case SC_K16:
                d = d0, s[0] = q_dup(vs8(sc + 16 + 16 * j)), s[1] = q_dup(vs8(sc + 24 + 16 * j));
                break;
            case SC_K16M: {
                v8i a = vu8(sc + 32 + 16 * j), b2 = vu8(sc + 40 + 16 * j);
                d = d0, m = m0;
                s[0] = q_dup(a & 15), s[1] = q_dup(b2 & 15);
                mn[0] = q_dup(a >> 4), mn[1] = q_dup(b2 >> 4);
                break;
            }
            case SC_K32: d = d0 * vcvt(vs8(sc + 16 + 8 * j)); break;
            }
            if (nr == 1)
                for (int o = 0; o < 32 * bits + 32; o += 64) __builtin_prefetch(q + (bits == 8 ? 512 : 1024) + o);
            q_block(bits, code, lut, scale, nr, q, x + b + j, xs, d, m, s, mn, acc);
            q += 32 * bits;
        }
        sc += q_record(scale);
    }
}

INLINE void q_store(float *y, const float *bias, int n, v8f v) {
    if (bias) v = v + vgetn(bias, n);
    vputn(y, v, n);
}

INLINE void q_rows(const int bits, const int code, const int8_t *lut, const int scale, const int nr, const gl_weight *w,
                   int expert, int t0, int t1, const gl_qblk *x, int64_t xs, const float *bias, float *y, int64_t ys) {
    const uint8_t *tile = w->packed + ((int64_t)expert * w->tiles + t0) * w->tile_bytes;
    for (int t = t0; t < t1; t++, tile += w->tile_bytes) {
        v8f acc[4];
        q_tile(bits, code, lut, scale, nr, tile, w->cols / 32, x, xs, acc);
UNROLL
        for (int r = 0; r < nr; r++)
            q_store(y + r * ys + GL_TILE * t, bias ? bias + GL_TILE * t : NULL, w->rows - GL_TILE * t, acc[r]);
    }
}

// Q_MM defines the multiplication of one layout.
#define Q_MM(name, bits, code, lut, scale)                                                                             \
    static void name(const gl_weight *w, int expert, int t0, int t1, const void *xv, int64_t xs, int n,                \
                     const float *bias, float *y, int64_t ys, float *scratch) {                                        \
        const gl_qblk *x = xv;                                                                                         \
        (void)scratch;                                                                                                 \
        int r = 0;                                                                                                     \
        for (; NARROW && r < n; r++)                                                                                   \
            q_rows(bits, code, lut, scale, 1, w, expert, t0, t1, x + r * xs, xs, bias, y + r * ys, ys);                \
        if (NARROW) return;                                                                                            \
        for (; r + 4 <= n; r += 4)                                                                                     \
            q_rows(bits, code, lut, scale, 4, w, expert, t0, t1, x + r * xs, xs, bias, y + r * ys, ys);                \
        for (; r + 2 <= n; r += 2)                                                                                     \
            q_rows(bits, code, lut, scale, 2, w, expert, t0, t1, x + r * xs, xs, bias, y + r * ys, ys);                \
        if (r < n) q_rows(bits, code, lut, scale, 1, w, expert, t0, t1, x + r * xs, xs, bias, y + r * ys, ys);         \
    }

Q_MM(mm_q8, 8, CODE_SIGNED, NULL, SC_H)
Q_MM(mm_q8c, 8, CODE_SIGNED, NULL, SC_F2)
Q_MM(mm_q4, 4, CODE_8, NULL, SC_H)
Q_MM(mm_q4m, 4, CODE_0, NULL, SC_HM)
Q_MM(mm_q5, 5, CODE_16, NULL, SC_H)
Q_MM(mm_q5m, 5, CODE_16, NULL, SC_HM)
Q_MM(mm_q2k, 2, CODE_0, NULL, SC_K16M)
Q_MM(mm_q3k, 3, CODE_4, NULL, SC_K16)
Q_MM(mm_q4k, 4, CODE_0, NULL, SC_KM)
Q_MM(mm_q5k, 5, CODE_16, NULL, SC_KM)
Q_MM(mm_q6k, 6, CODE_32, NULL, SC_K16)
Q_MM(mm_nl4, 4, CODE_SIGNED, levels_nl, SC_H)
Q_MM(mm_xs4, 4, CODE_SIGNED, levels_nl, SC_K32)
Q_MM(mm_mx4, 4, CODE_SIGNED, levels_mx, SC_F)

// quantise rounds n = 32·m activations. A NaN or an infinity makes the scale of its
// block not finite, so that it is not lost.
static void quantise(const float *x, int n, gl_qblk *q) {
    const v8f magic = vset(12582912.0f); // 1.5·2²³: adding it rounds to an integer
    for (; n > 0; n -= 32, x += 32, q++) {
        v8i m = vseti(0);
        for (int i = 0; i < 4; i++) m = vmaxi(m, (v8i)vabs(vload(x + 8 * i)));
        int32_t top = 0;
        for (int i = 0; i < 8; i++) top = m[i] > top ? m[i] : top;
        float amax;
        memcpy(&amax, &top, 4);
        float inv = amax > 0 ? 127.0f / amax : 0.0f;
        if (!(inv <= 3.4e38f)) inv = 0; // a subnormal block counts as zero
        v8f k = vset(inv);
        v8i v[4];
        int16_t c[4] = {0}; // Σq by half and lane
        for (int i = 0; i < 4; i++) v[i] = __builtin_convertvector((vload(x + 8 * i) * k + magic) - magic, v8i);
#if GL_AVX2
        __m256i b = _mm256_packs_epi16(_mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]), _mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]));
        b = _mm256_permutevar8x32_epi32(b, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)); // packs work in 128-bit halves
        _mm256_storeu_si256((__m256i *)q->q, b);
        __m256i t = _mm256_maddubs_epi16(_mm256_set1_epi8(1), b); // pairs; the half is the 128-bit lane
        t = _mm256_add_epi16(t, _mm256_srli_si256(t, 8));
        t = _mm256_add_epi16(t, _mm256_srli_si256(t, 4));
        int32_t lane[2] = {_mm256_extract_epi32(t, 0), _mm256_extract_epi32(t, 4)};
        memcpy(c, lane, 8);
#else
        for (int i = 0; i < 32; i++) {
            q->q[i] = (int8_t)v[i / 8][i % 8];
            c[i / 16 * 2 + (i >> 1 & 1)] += q->q[i];
        }
#endif
        q->d = inv == 0 && top < 0x7f800000 ? 0 : amax / 127.0f;
        q->s = q->d * (float)(c[0] + c[1] + c[2] + c[3]);
        memcpy(q->c, c, sizeof c);
        for (int i = 0; i < 2; i++) {
            q->t8[i] = (int16_t)(-8 * (c[i] + c[i + 2]));
            q->t16[i] = (int16_t)(-16 * (c[i] + c[i + 2]));
        }
        for (int i = 0; i < 4; i++) q->c32[i] = (int16_t)(-32 * c[i]);
    }
}
