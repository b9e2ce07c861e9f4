// simd.h: the vector vocabulary of the kernels. Types are GCC/Clang vector
// extensions of 32 bytes, so arithmetic, comparison and shifts are plain operators
// and compile for every machine; the few things that need an instruction of their
// own (widening halves, byte dot products, permutes) are functions with an AVX2 body
// and a plain one. A translation unit sets GL_AVX2 to 1 or 0 before it includes this.
#ifndef GL_SIMD_H
#define GL_SIMD_H
#include <stdint.h>
#include <string.h>
#if GL_AVX2
#include <immintrin.h>
#elif GL_NEON
#include <arm_neon.h>
#endif

// UNROLL stands before loops over register arrays; the plain variant stays small.
#if GL_AVX2 || GL_NEON
#define UNROLL _Pragma("GCC unroll 8")
#else
#define UNROLL
#endif
// PIN makes a sum exist in a register here: the compiler would otherwise collect the
// products of an unrolled loop and add them at its end, which spills them all.
#if GL_AVX2
#define PIN(v) __asm__("" : "+v"(v))
#else
#define PIN(v) (void)(v)
#endif
#define INLINE static inline __attribute__((always_inline, unused))

typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef uint32_t v8u __attribute__((vector_size(32)));
typedef int16_t v16s __attribute__((vector_size(32)));
typedef uint16_t v16u __attribute__((vector_size(32)));
typedef uint8_t vb __attribute__((vector_size(32)));
typedef uint16_t v8hu __attribute__((vector_size(16)));
typedef uint8_t v8bu __attribute__((vector_size(8)));
typedef int8_t v8bs __attribute__((vector_size(8)));

INLINE v8f vset(float x) { return (v8f){x, x, x, x, x, x, x, x}; }
INLINE v8i vseti(int32_t x) { return (v8i){x, x, x, x, x, x, x, x}; }
INLINE vb vsetb(uint8_t x) { return (vb){} + x; }
INLINE v8f vload(const float *p) { v8f v; memcpy(&v, p, 32); return v; }
INLINE void vstore(float *p, v8f v) { memcpy(p, &v, 32); }
INLINE vb vloadb(const void *p) { vb v; memcpy(&v, p, 32); return v; }
// vpart and vputpart move the first n < 8 elements; the rest reads as zero.
INLINE v8f vpart(const float *p, int n) { float t[8] = {0}; memcpy(t, p, 4 * (size_t)n); return vload(t); }
INLINE void vputpart(float *p, v8f v, int n) { float t[8]; vstore(t, v); memcpy(p, t, 4 * (size_t)n); }
INLINE v8f vgetn(const float *p, int n) { return n >= 8 ? vload(p) : vpart(p, n); }
INLINE void vputn(float *p, v8f v, int n) { if (n >= 8) vstore(p, v); else vputpart(p, v, n); }
// vsel picks a where the mask is set, b elsewhere.
INLINE v8f vsel(v8i m, v8f a, v8f b) { return (v8f)((m & (v8i)a) | (~m & (v8i)b)); }
INLINE v8f vabs(v8f x) { return (v8f)((v8i)x & 0x7fffffff); }
INLINE v8i vmaxi(v8i a, v8i b) { v8i m = a > b; return (m & a) | (~m & b); }

// vtop is the largest lane, vsum their sum.
INLINE int32_t vtop(v8i v) {
    v = vmaxi(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
    v = vmaxi(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5));
    return v[0] > v[1] ? v[0] : v[1];
}
INLINE int32_t vsum(v8i v) {
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return v[0] + v[1];
}

// fold adds the 16 lanes l[0..7], l[8..15] as exact mode does: 16→8→4→2→1.
INLINE float fold(v8f lo, v8f hi) {
    lo = lo + hi;
#if GL_AVX2
    __m128 a = _mm_add_ps(_mm256_castps256_ps128((__m256)lo), _mm256_extractf128_ps((__m256)lo, 1));
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
#else
    float a0 = lo[0] + lo[4], a1 = lo[1] + lo[5], a2 = lo[2] + lo[6], a3 = lo[3] + lo[7];
    a0 += a2;
    a1 += a3;
    return a0 + a1;
#endif
}

INLINE float half1(uint16_t h) {
#if GL_AVX2
    return _cvtsh_ss(h);
#endif
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff, b;
    float f;
    if (e == 0) {
        f = (float)m * (1.0f / (1 << 24));
        memcpy(&b, &f, 4);
        b |= sign;
    } else {
        b = e == 31 ? sign | 0x7f800000 | m << 13 : sign | (e + 112) << 23 | m << 13;
    }
    memcpy(&f, &b, 4);
    return f;
}

// tohalf1 rounds to nearest even, as tensor.F32ToF16.
INLINE uint16_t tohalf1(float f) {
    uint32_t b;
    memcpy(&b, &f, 4);
    uint32_t sign = b >> 16 & 0x8000;
    b &= 0x7fffffff;
    if (b > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (b >> 13 & 0x3ff));
    if (b >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (b < 0x33000001) return (uint16_t)sign;
    uint32_t v = b - (112u << 23), s = 13;
    if (b < 0x38800000) {
        v = (b & 0x7fffff) | 0x800000;
        s = 126 - (b >> 23);
    }
    return (uint16_t)(sign | ((v + ((1u << (s - 1)) - 1) + (v >> s & 1)) >> s));
}

// vhalf widens 8 halves. Without an instruction: the bits of a half, moved to where a
// float has them, are the value times 2⁻¹¹²; one exact product repairs that, for
// subnormals too. Infinities and NaN get their exponent back.
INLINE v8f vhalf(const void *p) {
#if GL_AVX2
    return (v8f)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
#else
    v8hu h;
    memcpy(&h, p, 16);
    v8u b = __builtin_convertvector(h, v8u), m = (b & 0x7fff) << 13;
    v8f f = (v8f)m * vset(0x1p112f);
    v8u inf = (v8u)(m >= 0x0f800000);
    return (v8f)(((v8u)f | (inf & 0x7f800000)) | (b & 0x8000) << 16);
#endif
}

INLINE void vtohalf(void *p, v8f v) {
#if GL_AVX2
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
    uint16_t h[8];
    for (int i = 0; i < 8; i++) h[i] = tohalf1(v[i]);
    memcpy(p, h, 16);
#endif
}

// vroundhalf is ops.RoundHalf.
INLINE v8f vroundhalf(v8f v) {
    uint16_t h[8];
    vtohalf(h, v);
    return vhalf(h);
}

// vbf16 widens 8 bfloat16.
INLINE v8f vbf16(const void *p) {
#if GL_AVX2
    return (v8f)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16);
#else
    v8hu h;
    memcpy(&h, p, 16);
    return (v8f)(__builtin_convertvector(h, v8u) << 16);
#endif
}

// vu8 and vs8 widen 8 bytes to 32-bit integers.
INLINE v8i vu8(const void *p) {
#if GL_AVX2
    return (v8i)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
    v8bu b;
    memcpy(&b, p, 8);
    return __builtin_convertvector(b, v8i);
#endif
}
INLINE v8i vs8(const void *p) {
#if GL_AVX2
    return (v8i)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
    v8bs b;
    memcpy(&b, p, 8);
    return __builtin_convertvector(b, v8i);
#endif
}

INLINE v8f vcvt(v8i v) { return __builtin_convertvector(v, v8f); }

// vbc broadcasts the 4 bytes at p to every 32-bit lane.
INLINE vb vbc(const void *p) {
    int32_t x;
    memcpy(&x, p, 4);
    return (vb)vseti(x);
}

INLINE vb vshr(vb v, int n) { return (vb)((v16u)v >> n); } // by 16-bit lanes: mask afterwards
INLINE vb vshl(vb v, int n) { return (vb)((v16u)v << n); }

#if GL_NEON
// n_low and n_high are the 128-bit halves of a vector.
#define n_low(v) __builtin_shufflevector((v8i)(v), (v8i)(v), 0, 1, 2, 3)
#define n_high(v) __builtin_shufflevector((v8i)(v), (v8i)(v), 4, 5, 6, 7)
typedef int32_t n_int __attribute__((vector_size(16)));
INLINE v8i n_both(n_int l, n_int h) { return __builtin_shufflevector(l, h, 0, 1, 2, 3, 4, 5, 6, 7); }
INLINE n_int n_dot8(n_int a, n_int b) {
    int8x16_t x = (int8x16_t)a, y = (int8x16_t)b;
    return (n_int)vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)), vmull_high_s8(x, y));
}
INLINE n_int n_dot16(n_int a, n_int b) {
    int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
    return (n_int)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
#endif

// vdotus multiplies unsigned with signed bytes and adds neighbours. The unsigned ones
// must be below 128 and the sums fit 16 bits.
INLINE v16s vdotus(vb u, vb s) {
#if GL_AVX2
    return (v16s)_mm256_maddubs_epi16((__m256i)u, (__m256i)s);
#elif GL_NEON
    return (v16s)n_both(n_dot8(n_low(u), n_low(s)), n_dot8(n_high(u), n_high(s)));
#else
    return (v16s)((v16u)u & 255) * ((v16s)((v16u)s << 8) >> 8) + (v16s)((v16u)u >> 8) * ((v16s)s >> 8);
#endif
}

// vmadd multiplies 16-bit lanes and adds neighbours to 32 bits.
INLINE v8i vmadd(v16s a, v16s b) {
#if GL_AVX2
    return (v8i)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif GL_NEON
    return n_both(n_dot16(n_low(a), n_low(b)), n_dot16(n_high(a), n_high(b)));
#else
    return ((v8i)((v8u)a << 16) >> 16) * ((v8i)((v8u)b << 16) >> 16) + ((v8i)a >> 16) * ((v8i)b >> 16);
#endif
}

// vdotss multiplies signed bytes and adds neighbours: |a| · (b with the sign of a).
// b must not hold -128; a may.
INLINE v16s vdotss(vb a, vb b) {
#if GL_AVX2
    return (v16s)_mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)a), _mm256_sign_epi8((__m256i)b, (__m256i)a));
#else
    return ((v16s)((v16u)a << 8) >> 8) * ((v16s)((v16u)b << 8) >> 8) + ((v16s)a >> 8) * ((v16s)b >> 8);
#endif
}

#if GL_DOT4
// vdot4 adds the products of four neighbouring unsigned with signed bytes to 32 bits.
// NEON's instruction takes both as signed, so that codes must be below 128 there:
// DOT_BIAS is what turns signed codes into such as vdot4 takes.
#if GL_NEON
enum { DOT_BIAS = 0 };
typedef int8_t v16b __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
INLINE v8i vdot4(v8i c, vb a, vb x) {
    v4i l = (v4i)vdotq_s32((int32x4_t)__builtin_shufflevector(c, c, 0, 1, 2, 3),
                           (int8x16_t)__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           (int8x16_t)__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    v4i h = (v4i)vdotq_s32((int32x4_t)__builtin_shufflevector(c, c, 4, 5, 6, 7),
                           (int8x16_t)__builtin_shufflevector(a, a, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31),
                           (int8x16_t)__builtin_shufflevector(x, x, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31));
    return __builtin_shufflevector(l, h, 0, 1, 2, 3, 4, 5, 6, 7);
}
#else
enum { DOT_BIAS = 128 };
INLINE v8i vdot4(v8i c, vb a, vb x) { return (v8i)_mm256_dpbusd_epi32((__m256i)c, (__m256i)a, (__m256i)x); }
#endif
#endif

// vlut looks up the low four bits of every byte in a table of 16.
INLINE vb vlut(const uint8_t *table, vb i) {
#if GL_AVX2
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return (vb)_mm256_shuffle_epi8(t, (__m256i)i);
#elif GL_NEON
    uint8_t r[32];
    uint8x16_t t = vld1q_u8(table);
    memcpy(r, &i, 32);
    vst1q_u8(r, vqtbl1q_u8(t, vld1q_u8(r)));
    vst1q_u8(r + 16, vqtbl1q_u8(t, vld1q_u8(r + 16)));
    return vloadb(r);
#else
    uint8_t r[32];
    for (int k = 0; k < 32; k++) r[k] = table[i[k] & 15];
    return vloadb(r);
#endif
}

// vfma is a·b + c, fused where the machine can: for fast mode only.
INLINE v8f vfma(v8f a, v8f b, v8f c) {
#if GL_AVX2
    return (v8f)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif GL_NEON
    for (int i = 0; i < 8; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]); // becomes two fmla
    return c;
#else
    return a * b + c;
#endif
}

// xfma8 is a·b + c where a·b is exact, so that fusing changes no bit.
INLINE v8f xfma8(v8f a, v8f b, v8f c) { return vfma(a, b, c); }

// The float vectors of exact mode hold four columns of XR weight rows, a row per 128
// bits, so that the code is the same for any XR. Plain vectors are as wide as AVX-512's, so
// that every machine tests what happens to rows that are no multiple of four.
#if GL_AVX512 || !(GL_AVX2 || GL_NEON)
enum { XR = 4 };
#elif GL_AVX2
enum { XR = 2 };
#else
enum { XR = 1 };
#endif

typedef float xf __attribute__((vector_size(16 * XR)));
typedef uint8_t xb __attribute__((vector_size(16 * XR)));

INLINE xf xset(float x) { return (xf){0} + x; }

// xrows takes 16 bytes of each row; xbc repeats four activations.
#if GL_AVX512
INLINE xb xrows(const void *p, int64_t ws) {
    const char *c = p;
    __m256i a = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)c)), _mm_loadu_si128((const void *)(c + ws)), 1);
    __m256i b = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(c + 2 * ws))), _mm_loadu_si128((const void *)(c + 3 * ws)), 1);
    return (xb)_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}
INLINE xf xbc(const float *x) { return (xf)_mm512_broadcast_f32x4(_mm_loadu_ps(x)); }
#elif GL_AVX2
INLINE xb xrows(const void *p, int64_t ws) {
    return (xb)_mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p)), _mm_loadu_si128((const void *)((const char *)p + ws)), 1);
}
INLINE xf xbc(const float *x) { return (xf)_mm256_broadcast_ps((const __m128 *)x); }
#else
INLINE xb xrows(const void *p, int64_t ws) {
    xb v;
    for (int r = 0; r < XR; r++) memcpy((char *)&v + 16 * r, (const char *)p + r * ws, 16);
    return v;
}
INLINE xf xbc(const float *x) {
    xf v;
    for (int r = 0; r < XR; r++) memcpy((char *)&v + 16 * r, x, 16);
    return v;
}
#endif

// xrowsf takes four floats of each row.
INLINE xf xrowsf(const float *p, int64_t step) { return (xf)xrows(p, 4 * step); }

// xfold adds the 16 lanes of each row, which stand in four vectors, as fold does.
INLINE void xfold(const xf *l, float *y) {
    xf a = (l[0] + l[2]) + (l[1] + l[3]);
    for (int r = 0; r < XR; r++) y[r] = (a[4 * r] + a[4 * r + 2]) + (a[4 * r + 1] + a[4 * r + 3]);
}

#endif
