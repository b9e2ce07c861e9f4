// k_scan.h: sums over rows of logits and the search for the best, as plugins/rowstats (ScanMoments,
// ScanMass) and plugins/sampling (ScanLimit, ScanAbove) define them, to the bit: element i
// of a row belongs to lane i mod 16, a block is 64 elements of each lane, and no product is
// fused with a sum.
//
// Plain version: one pass that looks at each logit with branches, 1.3 ms for 262,144 of
// them. Here a block is first taken as if all its logits were finite; where the sums show
// that they were not, it is taken again with masks. No finite logit is above the top of
// scan_mass, peaks are never NaN, and of two zeros as of any equal logits the first is the
// largest.
//
// One pass for both sums, with weights from the pivot on and the whole part of the power
// taken as an integer, was tried: 105 µs where the two passes here take 118.

enum { SCAN_LANES = 16, SCAN_BLOCK = 1024, SCAN_PART = 256 };

#define SCAN_MAX vset(0x1.fffffep127f)
#define SCAN_FAR (-100.0f) // the exponent of two of no weight

// vhigh is the larger of x and m, and m where x is no number.
INLINE v8f vhigh(v8f x, v8f m) {
#if GL_AVX2
    return (v8f)_mm256_max_ps((__m256)x, (__m256)m);
#else
    return vsel(x > m, x, m);
#endif
}

// vbits has a bit for each lane of a mask.
INLINE uint32_t vbits(v8i mask) {
#if GL_AVX2
    return (uint32_t)_mm256_movemask_ps((__m256)mask);
#else
    uint32_t b = 0;
    for (int i = 0; i < 8; i++) b |= (uint32_t)(mask[i] & 1) << i;
    return b;
#endif
}

INLINE int vany(v8i mask) {
#if GL_AVX2
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    uint64_t w[4];
    memcpy(w, &mask, 32);
    return (w[0] | w[1] | w[2] | w[3]) != 0;
#endif
}

INLINE int vfinite(v8f a, v8f b) { return !vany(~(vabs(a) <= SCAN_MAX) | ~(vabs(b) <= SCAN_MAX)); }

// lanes are the sums of a row's lanes and what their additions rounded away (rowstats.Lanes).
typedef struct {
    v8f high[2], low[2];
} scan_lanes;

// scan_add adds the sums of a block's lanes.
INLINE void scan_add(scan_lanes *t, const v8f *block) {
    for (int h = 0; h < 2; h++) {
        v8f high = t->high[h], v = block[h], sum = high + v;
        v8f b = sum - high, a = sum - b;
        t->low[h] = t->low[h] + ((high - a) + (v - b));
        t->high[h] = sum;
    }
}

// scan_sum adds the lanes in their order.
INLINE double scan_sum(const scan_lanes *t) {
    double sum = 0;
    for (int i = 0; i < SCAN_LANES; i++) {
        float high = t->high[i / 8][i % 8];
        double v = (double)high;
        if (high - high == 0) v += (double)t->low[i / 8][i % 8]; // else the rest is no number
        sum += v;
    }
    return sum;
}

// moments_block takes one block; without care it is right where every logit is finite.
INLINE void moments_block(const int care, const float *row, v8f pivot, float *peaks, v8f *first, v8f *second, int64_t *count, int32_t *bad) {
    v8f f0 = vset(0), f1 = vset(0), s0 = vset(0), s1 = vset(0);
    v8i n = vseti(0), over = vseti(0);
    const v8f none = vset(-__builtin_inff());
    for (int part = 0; part < SCAN_BLOCK; part += SCAN_PART, peaks += SCAN_LANES) {
        v8f p0 = none, p1 = none;
        for (int i = part; i < part + SCAN_PART; i += SCAN_LANES) {
            v8f a = vload(row + i), b = vload(row + i + 8);
            v8f x = a - pivot, y = b - pivot;
            if (care) {
                v8i k = vabs(a) <= SCAN_MAX, l = vabs(b) <= SCAN_MAX;
                over |= ~k & ~(a < vset(0));
                over |= ~l & ~(b < vset(0));
                n -= k + l;
                x = (v8f)(k & (v8i)x);
                y = (v8f)(l & (v8i)y);
                a = vsel(k, a, none);
                b = vsel(l, b, none);
            }
            p0 = vhigh(a, p0);
            p1 = vhigh(b, p1);
            f0 = f0 + x;
            f1 = f1 + y;
            s0 = s0 + x * x;
            s1 = s1 + y * y;
        }
        vstore(peaks, p0);
        vstore(peaks + 8, p1);
    }
    first[0] = f0, first[1] = f1, second[0] = s0, second[1] = s1;
    *count = care ? vsum(n) : SCAN_BLOCK;
    *bad = care && vany(over);
}

static gl_moments scan_moments(const float *row, int64_t n, float pivot, float *peaks) {
    scan_lanes first = {0}, second = {0};
    float tail[SCAN_BLOCK];
    int64_t at = -1;
    float largest = -__builtin_inff();
    gl_moments m = {.largest_at = -1};
    for (int64_t from = 0; from < n; from += SCAN_BLOCK, peaks += SCAN_BLOCK * SCAN_LANES / SCAN_PART) {
        const float *block = row + from;
        if (n - from < SCAN_BLOCK) {
            for (int i = 0; i < SCAN_BLOCK; i++) tail[i] = i < n - from ? block[i] : -__builtin_inff();
            block = tail;
        }
        v8f f[2], s[2];
        int64_t count;
        int32_t bad;
        moments_block(0, block, vset(pivot), peaks, f, s, &count, &bad);
        if (!vfinite(s[0], s[1])) moments_block(1, block, vset(pivot), peaks, f, s, &count, &bad);
        m.count += count;
        m.bad |= bad;
        scan_add(&first, f);
        scan_add(&second, s);
        v8f p = vload(peaks);
        for (int i = 8; i < SCAN_BLOCK * SCAN_LANES / SCAN_PART; i += 8) p = vhigh(vload(peaks + i), p);
        if (!vany(p > vset(largest))) continue;
        at = from;
        for (int i = 0; i < 8; i++)
            if (p[i] > largest) largest = p[i];
    }
    m.first = scan_sum(&first);
    m.second = scan_sum(&second);
    if (at >= 0)
        while (row[at] != largest) at++;
    m.largest_at = at;
    return m;
}

// mass_block takes one block; without care it is right where no logit is above the top and
// none is without weight, which *none tells.
// Four vectors go through each step together: the steps of a power take some 45 cycles,
// and processors look too few instructions ahead to fill them (Zen 2: 116 µs so, 96 here).
INLINE void mass_block(const int care, const float *row, v8f top, v8f *sum, v8f *distance, v8i *none) {
    enum { W = 4 };
    const v8f far = vset(SCAN_FAR), magic = vset(0x1.8p23f);
    v8f s[2] = {vset(0), vset(0)}, d[2] = {vset(0), vset(0)};
    v8i n = vseti(0);
    for (int i = 0; i < SCAN_BLOCK; i += 8 * W) {
        v8f t[W], f[W], m[W], g[W], p[W], q[W];
        UNROLL for (int h = 0; h < W; h++) t[h] = (vload(row + i + 8 * h) - top) * vset(1.44269504f);
        if (care) UNROLL for (int h = 0; h < W; h++) t[h] = vsel(t[h] <= vset(0), t[h], far);
        if (care) UNROLL for (int h = 0; h < W; h++) t[h] = vhigh(t[h], far);
        if (!care) UNROLL for (int h = 0; h < W; h++) n |= t[h] <= far;
        UNROLL for (int h = 0; h < W; h++) m[h] = t[h] + magic;
        UNROLL for (int h = 0; h < W; h++) f[h] = t[h] - (m[h] - magic);
        UNROLL for (int h = 0; h < W; h++) p[h] = vset(0.0013264727f) * f[h] + vset(0.009671513f);
        UNROLL for (int h = 0; h < W; h++) q[h] = vset(0.055507336f) * f[h] + vset(0.24022242f);
        UNROLL for (int h = 0; h < W; h++) g[h] = f[h] * f[h];
        UNROLL for (int h = 0; h < W; h++) p[h] = p[h] * g[h] + q[h];
        UNROLL for (int h = 0; h < W; h++) q[h] = vset(0.69314698f) * f[h] + vset(1.0f);
        UNROLL for (int h = 0; h < W; h++) p[h] = p[h] * g[h] + q[h];
        UNROLL for (int h = 0; h < W; h++) p[h] = (v8f)((v8u)p[h] + ((v8u)m[h] << 23));
        if (care) UNROLL for (int h = 0; h < W; h++) p[h] = (v8f)((t[h] > far) & (v8i)p[h]);
        UNROLL for (int h = 0; h < W; h++) s[h & 1] = s[h & 1] + p[h];
        UNROLL for (int h = 0; h < W; h++) d[h & 1] = d[h & 1] + p[h] * t[h];
    }
    sum[0] = s[0], sum[1] = s[1], distance[0] = d[0], distance[1] = d[1];
    *none = n;
}

static gl_mass scan_mass(const float *row, int64_t n, float top) {
    scan_lanes sum = {0}, distance = {0};
    float tail[SCAN_BLOCK];
    for (int64_t from = 0; from < n; from += SCAN_BLOCK) {
        const float *block = row + from;
        if (n - from < SCAN_BLOCK) {
            for (int i = 0; i < SCAN_BLOCK; i++) tail[i] = i < n - from ? block[i] : -__builtin_inff();
            block = tail;
        }
        v8f s[2], d[2];
        v8i none;
        mass_block(0, block, vset(top), s, d, &none);
        if (!vfinite(s[0], s[1]) || vany(none)) mass_block(1, block, vset(top), s, d, &none);
        scan_add(&sum, s);
        scan_add(&distance, d);
    }
    return (gl_mass){scan_sum(&sum), -0.693147180559945309 * scan_sum(&distance)};
}

// scan_ordered maps the bits of a float to a number that compares as the float does.
INLINE uint32_t scan_ordered(float f) {
    uint32_t b;
    memcpy(&b, &f, 4);
    return b ^ ((uint32_t)((int32_t)b >> 31) | 0x80000000u);
}

INLINE float scan_unordered(uint32_t u) {
    u ^= u >> 31 ? 0x80000000u : 0xffffffffu;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static float scan_limit(const float *peaks, int64_t count, int64_t n, float *spare) {
    while (count % (2 * SCAN_LANES) == 0 && count / 2 >= 4 * n) {
        count /= 2;
        for (int64_t i = 0; i < count; i += 8) vstore(spare + i, vhigh(vload(peaks + i), vload(peaks + count + i)));
        peaks = spare;
    }
    uint32_t low = scan_ordered(-0x1.fffffep127f), high = scan_ordered(0x1.fffffep127f);
    while (low < high) {
        uint32_t mid = high - (high - low) / 2;
        const v8f limit = vset(scan_unordered(mid));
        v8i a = vseti(0), b = vseti(0);
        for (int64_t i = 0; i < count; i += 16) {
            a -= vload(peaks + i) >= limit;
            b -= vload(peaks + i + 8) >= limit;
        }
        if (vsum(a + b) >= n)
            low = mid;
        else
            high = mid - 1;
    }
    return scan_unordered(low);
}

static int64_t scan_above(int32_t *found, const float *row, int64_t n, const float *peaks, float limit) {
    int64_t k = 0;
    const v8f least = vset(limit);
    for (int64_t from = 0; from < n; from += SCAN_PART, peaks += SCAN_LANES) {
        if (!vany((vload(peaks) >= least) | (vload(peaks + 8) >= least))) continue;
        const int64_t to = from + SCAN_PART < n ? from + SCAN_PART : n;
        int64_t i = from;
        for (; i + 8 <= to; i += 8) {
            v8f l = vload(row + i);
            v8i is = (l >= least) & (l <= SCAN_MAX);
            if (!vany(is)) continue;
            for (uint32_t bits = vbits(is); bits; bits &= bits - 1) found[k++] = (int32_t)i + __builtin_ctz(bits);
        }
        for (; i < to; i++)
            if (row[i] >= limit && row[i] <= 0x1.fffffep127f) found[k++] = (int32_t)i;
    }
    return k;
}
