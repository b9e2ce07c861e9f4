// k_attention.h: softmax(scale·q·kᵀ)·v over a row's own sequence, in chunks of 256
// positions anchored at position 0 (gpu/DESIGN.md, rule 5). A chunk is at most four
// pages, and within a page the cells of a head stand one after another.
//
// The plain version walks one head and one position at a time. What changed:
//  1. query heads that share a KV head are computed together (up to four), so that a
//     key or value is loaded and widened from half once for them;
//  2. scores are dot products in 16 lanes, eight chains of them at once; values are
//     added column block by column block with the sums in registers;
//  3. one row's chunks are tasks of their own when there are few rows (decode): the
//     contract's partial results make that free of rounding.
// Exact mode passes over the chunks twice, for a probability must be rounded when all
// scores are known. Fast mode rounds it within its chunk, which takes one pass and no
// place for exponentials, and fuses multiply-add. k_attend.h divides the work.
#include "cpu.h"
#include "numerics.h"

// a_cell is one cached head: its values and, in GL_KV_Q8, their scales.
typedef struct {
    const uint8_t *p;
    int width;
} a_cell;

INLINE float a_scale(uint16_t h) {
#if GL_AVX2
    return _cvtsh_ss(h);
#else
    return half1(h);
#endif
}

// a_load widens the 8 values from i on, a multiple of 8.
INLINE v8f a_load(const int type, a_cell c, int i) {
    if (type == GL_KV_F16) return vhalf(c.p + 2 * i);
    if (type == GL_KV_Q8) {
        uint16_t d;
        memcpy(&d, c.p + c.width + i / GL_KV_BLOCK * 2, 2);
        return vcvt(vs8(c.p + i)) * vset(a_scale(d));
    }
    v8f v;
    memcpy(&v, c.p + 4 * i, 32);
    return v;
}

// a_loadn is a_load of the last n values of a head; the rest is zero.
INLINE v8f a_loadn(const int type, a_cell c, int i, int n) {
    if (n >= 8) return a_load(type, c, i);
    const int size = type == GL_KV_F32 ? 4 : type == GL_KV_F16 ? 2 : 1;
    uint8_t t[40] = {0};
    if (n > 0) memcpy(t, c.p + size * i, (size_t)(size * n));
    if (type == GL_KV_Q8) memcpy(t + 8, c.p + c.width + i / GL_KV_BLOCK * 2, 2);
    return a_load(type, (a_cell){t, 8}, 0);
}

INLINE v8f a_madd(const int exact, v8f a, v8f b, v8f c) { return exact ? c + a * b : vfma(a, b, c); }

// a_dots: nq queries times nk keys; s[q·GL_CHUNK + k] receives the dot products.
INLINE void a_dots(const int type, const int exact, const int nq, const int nk, const float *q, int64_t qs,
                   const a_cell *k, int n, float *s) {
    v8f l[4][4], h[4][4]; // fixed sizes: arrays of variable size stay in memory
UNROLL
    for (int a = 0; a < nq; a++)
UNROLL
        for (int b = 0; b < nk; b++) l[a][b] = h[a][b] = vset(0);
    int i = 0;
    for (; i + 16 <= n; i += 16)
UNROLL
        for (int b = 0; b < nk; b++) {
            v8f k0 = a_load(type, k[b], i), k1 = a_load(type, k[b], i + 8);
UNROLL
            for (int a = 0; a < nq; a++) {
                l[a][b] = a_madd(exact, vload(q + a * qs + i), k0, l[a][b]);
                h[a][b] = a_madd(exact, vload(q + a * qs + i + 8), k1, h[a][b]);
            }
        }
    if (i < n)
UNROLL
        for (int b = 0; b < nk; b++)
UNROLL
            for (int a = 0; a < nq; a++) {
                l[a][b] = a_madd(exact, vgetn(q + a * qs + i, n - i), a_loadn(type, k[b], i, n - i), l[a][b]);
                if (n - i > 8)
                    h[a][b] = a_madd(exact, vgetn(q + a * qs + i + 8, n - i - 8), a_loadn(type, k[b], i + 8, n - i - 8), h[a][b]);
            }
UNROLL
    for (int a = 0; a < nq; a++)
UNROLL
        for (int b = 0; b < nk; b++) s[a * GL_CHUNK + b] = fold(l[a][b], h[a][b]);
}

// a_kv is one KV head of the positions of a chunk, page by page: position GL_CHUNK·c + i
// stands in cell i mod GL_PAGE of page[i / GL_PAGE].
typedef struct {
    const uint8_t *page[GL_CHUNK_PAGES]; // the head's cells
    int64_t bytes; // of one cell
    int width;
} a_kv;

// a_pages finds the pages of chunk c that hold positions [lo, hi).
INLINE void a_pages(const int32_t *table, const void *mem, int64_t heads, int64_t head, int lo, int hi, a_kv *k) {
    for (int g = lo / GL_PAGE; g <= (hi - 1) / GL_PAGE; g++)
        k->page[g % GL_CHUNK_PAGES] = (const uint8_t *)mem + (table[g] * heads + head) * GL_PAGE * k->bytes;
}

INLINE a_cell a_at(const a_kv *k, const uint8_t *page, int i) { return (a_cell){page + i * k->bytes, k->width}; }

// a_scores walks the runs of positions that stand together: those of a page.
INLINE void a_scores(const int type, const int exact, const int nq, const int nk, const float *q, int64_t qs, const a_kv *k,
                     int from, int to, float *s) {
    for (int i = from; i < to;) {
        const uint8_t *page = k->page[i / GL_PAGE];
        int j = i % GL_PAGE, end = to - i + j < GL_PAGE ? to - i + j : GL_PAGE;
        const int at = i - from - j; // of the page's cell 0 in s
        i += end - j;
        for (; j + nk <= end; j += nk) {
            a_cell c[4];
UNROLL
            for (int b = 0; b < nk; b++) c[b] = a_at(k, page, j + b);
            a_dots(type, exact, nq, nk, q, qs, c, k->width, s + at + j);
        }
        for (; j < end; j++) {
            a_cell c[1] = {a_at(k, page, j)};
            a_dots(type, exact, nq, 1, q, qs, c, k->width, s + at + j);
        }
    }
}

// a_values adds e_j·v_j for nv vectors of columns from d on.
INLINE void a_values(const int type, const int exact, const int nq, const int nv, const float *e, const a_kv *v, int from, int to,
                     int d, float *acc, int64_t as) {
    v8f s[4][8];
UNROLL
    for (int a = 0; a < nq; a++)
UNROLL
        for (int b = 0; b < nv; b++) s[a][b] = vset(0);
    for (int i = from; i < to;) {
        const uint8_t *page = v->page[i / GL_PAGE];
        int j = i % GL_PAGE, end = to - i + j < GL_PAGE ? to - i + j : GL_PAGE;
        const int at = i - from - j; // of the page's cell 0 in e
        i += end - j;
        for (; j < end; j++) {
            a_cell c = a_at(v, page, j);
UNROLL
            for (int b = 0; b < nv; b++) {
                v8f x = a_load(type, c, d + 8 * b);
UNROLL
                for (int a = 0; a < nq; a++) s[a][b] = a_madd(exact, vset(e[a * GL_CHUNK + at + j]), x, s[a][b]);
            }
        }
    }
UNROLL
    for (int a = 0; a < nq; a++)
UNROLL
        for (int b = 0; b < nv; b++) vstore(acc + a * as + d + 8 * b, s[a][b]);
}

// a_value_rest adds the last columns, fewer than a vector.
INLINE void a_value_rest(const int type, const int exact, const int nq, const float *e, const a_kv *v, int from, int to, int d,
                         float *acc, int64_t as) {
UNROLL
    for (int a = 0; a < nq; a++) {
        v8f s = vset(0);
        for (int i = from; i < to; i++) {
            a_cell c = a_at(v, v->page[i / GL_PAGE], i % GL_PAGE);
            s = a_madd(exact, vset(e[a * GL_CHUNK + i - from]), a_loadn(type, c, d, v->width - d), s);
        }
        vputpart(acc + a * as + d, s, v->width - d);
    }
}

// a_round rounds queries and probabilities as a cache of halves rounds what they meet.
INLINE v8f a_round(const int half, v8f v) { return half ? vroundhalf(v) : v; }

// The passes over a chunk: all at once in fast mode, scores and then values in exact mode.
enum { A_ONCE, A_SCORES, A_VALUES };

// a_task is one chunk of positions [lo, hi) for nq heads of one row. A head's part of it
// holds value sums or, between the passes, exponentials; at tail the largest score and
// the sum of the exponentials. A head's parts follow each other, ps floats apart.
typedef struct {
    const gl_op *op;
    const float *q;      // first head's query
    const float *slopes; // of the first head, or NULL
    int nq, lo, hi, pos;
    a_kv k, v;
    float *part; // of the first head; the next head's is hs floats on
    int64_t hs, ps, tail;
    float *scores;          // [4][GL_CHUNK]
    float max[4], recip[4]; // for A_VALUES: of all chunks of each head
} a_task;

// a_softmax turns the dot products of one head into exponentials relative to the chunk's
// maximum and gives both. The sum's lanes are anchored at the chunk's start: lead zeros
// stand before lo.
INLINE void a_softmax(const a_task *t, int a, float *s, float *tail) {
    const int n = t->hi - t->lo, lead = t->lo % 16;
    const float scale = t->op->f[0], cap = t->op->f[1];
    float m = -__builtin_inff();
    for (int j = 0; j < n; j += 8) {
        v8f v = vgetn(s + j, n - j) * vset(scale);
        if (cap > 0) v = ntanh(v * vset(t->op->f[2])) * vset(cap);
        if (t->slopes && t->slopes[a] != 0) {
            v8f d = vset((float)(t->lo + j - t->pos)) + (v8f){0, 1, 2, 3, 4, 5, 6, 7};
            v = v + vset(t->slopes[a]) * d;
        }
        vputn(s + j, v, n - j);
    }
    for (int j = 0; j < n; j++) m = s[j] > m ? s[j] : m;
    for (int j = 0; j < n; j += 8) vputn(s + j, nexp(vgetn(s + j, n - j) - vset(m)), n - j);
    float lanes[GL_CHUNK + 32] = {0};
    memcpy(lanes + lead, s, (size_t)n * 4);
    tail[0] = m;
    tail[1] = nsum(lanes, lead + n);
}

// a_weigh makes probabilities of n exponentials.
INLINE void a_weigh(const int half, const float *e, float weight, int n, float *p) {
    for (int j = 0; j < n; j += 8) vputn(p + j, a_round(half, vgetn(e + j, n - j) * vset(weight)), n - j);
}

INLINE void a_chunk(const int type, const int pass, const int nq, const a_task *t) {
    const int n = t->hi - t->lo, from = t->lo % GL_CHUNK, kd = t->op->i[1], vd = t->op->i[2];
    const int exact = pass != A_ONCE, half = type == GL_KV_F16;
    if (pass != A_VALUES) a_scores(type, exact, nq, 4 / nq, t->q, kd, &t->k, from, from + n, t->scores);
UNROLL
    for (int a = 0; a < nq; a++) {
        float *s = t->scores + a * GL_CHUNK, *part = t->part + a * t->hs, *tail = part + t->tail;
        if (pass != A_VALUES) a_softmax(t, a, s, tail);
        if (pass == A_SCORES) memcpy(part, s, (size_t)n * 4);
        if (pass == A_ONCE) a_weigh(half, s, recip1(tail[1]), n, s);
        if (pass == A_VALUES) a_weigh(half, part, exp1(tail[0] - t->max[a]) * t->recip[a], n, s);
    }
    if (pass == A_SCORES) return;
    int d = 0;
    for (; d + 64 / nq <= vd; d += 64 / nq) a_values(type, exact, nq, 8 / nq, t->scores, &t->v, from, from + n, d, t->part, t->hs);
    for (; d + 8 <= vd; d += 8) a_values(type, exact, nq, 1, t->scores, &t->v, from, from + n, d, t->part, t->hs);
    if (d < vd) a_value_rest(type, exact, nq, t->scores, &t->v, from, from + n, d, t->part, t->hs);
}

#define A_CHUNK(type, pass)                                                                                            \
    static void a_chunk_##type##pass(const a_task *t) {                                                                \
        if (t->nq == 4) a_chunk(type, pass, 4, t);                                                                     \
        else if (t->nq == 2) a_chunk(type, pass, 2, t);                                                                \
        else a_chunk(type, pass, 1, t);                                                                                \
    }
A_CHUNK(0, 0)
A_CHUNK(0, 1)
A_CHUNK(0, 2)
A_CHUNK(1, 0)
A_CHUNK(1, 1)
A_CHUNK(1, 2)
A_CHUNK(2, 0)
A_CHUNK(2, 1)
A_CHUNK(2, 2)
// A_CHUNKS is by type of cache and pass.
static void (*const A_CHUNKS[3][3])(const a_task *t) = {
    {a_chunk_00, a_chunk_01, a_chunk_02}, {a_chunk_10, a_chunk_11, a_chunk_12}, {a_chunk_20, a_chunk_21, a_chunk_22}};
