// k_whole.h: packed weights times activations of whole numbers (exact mode, gpu/DESIGN.md,
// rule 2). It reads the tiles that fast mode reads.
//
// A sum over a group of columns has no rounding, so any instructions may make it: an
// activation X of 23 bits is 4096·H + L, both halves fit 16 bits, and vpmaddwd multiplies
// codes with either and leaves each row's sum in its 32-bit lane. The one rounding of the
// contract is 4096·ΣqH + ΣqL, fused or not. Sums over blocks go to the contract's eight
// lanes, which are vectors of eight rows here and stay in the first-level cache.
#include "cpu.h"
#include "simd.h"

// x_offset is what is subtracted from the codes of a tile.
INLINE int x_offset(const int code) { return code == CODE_4 ? 4 : code == CODE_8 ? 8 : code == CODE_16 ? 16 : code == CODE_32 ? 32 : 0; }

// x_even and x_odd widen the codes of columns 0, 2 and 1, 3 of a vector to 16 bits.
INLINE v16s x_even(const int code, vb v) { return code == CODE_SIGNED ? (v16s)((v16u)v << 8) >> 8 : (v16s)v & 255; }
INLINE v16s x_odd(const int code, vb v) { return code == CODE_SIGNED ? (v16s)v >> 8 : (v16s)((v16u)v >> 8); }

// x_pair adds column quad g to the sums of nr activation rows.
INLINE void x_pair(const int code, const int nr, const int g, vb v, const gl_wblk *x, int64_t xs, v8i *hi, v8i *lo) {
    const v16s even = x_even(code, v), odd = x_odd(code, v);
UNROLL
    for (int r = 0; r < nr; r++) {
        const int16_t *w = x[r * xs].w[g];
        hi[r] += vmadd(even, (v16s)vbc(w)) + vmadd(odd, (v16s)vbc(w + 2));
        lo[r] += vmadd(even, (v16s)vbc(w + 4)) + vmadd(odd, (v16s)vbc(w + 6));
        PIN(hi[r]);
        PIN(lo[r]);
    }
}

// x_term adds one group to a lane: t·(d·s), then z·(m·s) where there is a minimum.
INLINE void x_term(v8i hi, v8i lo, v8f d, const int min, v8f m, float s, float z, v8f *lane) {
    v8f t = xfma8(vcvt(hi), vset(4096), vcvt(lo));
    *lane = *lane + t * (d * vset(s));
    if (min) *lane = *lane + vset(z) * (m * vset(s));
}

// x_block adds block b of nr activation rows to their lanes. d, m: the scales and minima
// of the rows, by half of the block where halves differ.
INLINE void x_block(const int bits, const int code, const int8_t *lut, const int halves, const int min, const int nr, const uint8_t *q,
                    const gl_wblk *x, int64_t xs, const v8f *d, const v8f *m, v8f lanes[][GL_LANES], int b) {
    const int off = x_offset(code);
    v8i hi[4], lo[4], hi2[4], lo2[4];
UNROLL
    for (int r = 0; r < nr; r++) {
        const gl_wblk *k = x + r * xs;
        hi[r] = vseti(-off * (halves ? k->zh[0] : k->zh[0] + k->zh[1]));
        lo[r] = vseti(-off * (halves ? k->zl[0] : k->zl[0] + k->zl[1]));
        hi2[r] = vseti(-off * k->zh[1]);
        lo2[r] = vseti(-off * k->zl[1]);
    }
UNROLL
    for (int i = 0; i < 4; i++) {
        vb a, c;
        q_pair(bits, lut, q, i, &a, &c);
        x_pair(code, nr, i, a, x, xs, hi, lo);
        if (halves) x_pair(code, nr, i + 4, c, x, xs, hi2, lo2);
        else x_pair(code, nr, i + 4, c, x, xs, hi, lo);
    }
UNROLL
    for (int r = 0; r < nr; r++) {
        const gl_wblk *k = x + r * xs;
        v8f *lane = &lanes[r][b % GL_LANES];
        x_term(hi[r], lo[r], d[0], min, m[0], k->s, k->z[halves ? 1 : 0], lane);
        if (halves) x_term(hi2[r], lo2[r], d[1], min, m[1], k->s, k->z[2], lane);
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
    v8f lanes[4][GL_LANES] = {};
    for (int b = 0; b < nb; b += super) {
        for (int j = 0; j < super; j++) {
            v8f d[2] = {}, m[2] = {};
            x_scales(scale, sc, j, d, m);
            if (nr == 1)
                for (int o = 0; o < 32 * bits + 32; o += 64) __builtin_prefetch(q + (bits == 8 ? 512 : 1024) + o);
            x_block(bits, code, lut, halves, min, nr, q, x + b + j, xs, d, m, lanes, b + j);
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
X_MM(mx_mx4, 4, CODE_SIGNED, levels_mx, SC_F)

// x_round is ops.RoundBlock of n = 32·m activations.
static void x_round(const float *x, int n, gl_wblk *k) {
    for (; n > 0; n -= 32, x += 32, k++) {
        v8i m = vseti(0);
        for (int i = 0; i < 4; i++) m = vmaxi(m, (v8i)vabs(vload(x + 8 * i)));
        int32_t top = 0, whole[32] = {0};
        for (int i = 0; i < 8; i++) top = m[i] > top ? m[i] : top;
        const int32_t e = top >> 23, down = e == 255 ? 0x7fc00000 : e < 67 ? 0 : (e - 21) << 23;
        memcpy(&k->s, &down, 4);
        if (e >= 67 && e < 255) {
            const v8f up = (v8f)vseti((275 - e) << 23), magic = vset(12582912.0f); // its bits count whole numbers
            for (int i = 0; i < 4; i++) {
                v8i v = (v8i)(vload(x + 8 * i) * up + magic) - (v8i)magic;
                memcpy(whole + 8 * i, &v, 32);
            }
        }
        int32_t z[2] = {0, 0};
        for (int i = 0; i < 32; i++) {
            const int32_t v = whole[i], h = (v + 2048) >> 12;
            k->w[i / 4][0 + 2 * (i & 1) + (i >> 1 & 1)] = (int16_t)h;
            k->w[i / 4][4 + 2 * (i & 1) + (i >> 1 & 1)] = (int16_t)(v - (h << 12));
            z[i / 16] += v;
        }
        for (int h = 0; h < 2; h++) k->z[1 + h] = (float)z[h], k->zh[h] = z[h] >> 12, k->zl[h] = z[h] & 4095;
        k->z[0] = (float)(z[0] + z[1]);
    }
}
