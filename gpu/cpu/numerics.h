// numerics.h: the elementary functions of gpu/ops/numerics.go, eight at a time, with
// the same operations in the same order. Branches become selections: both sides are
// computed, the mask picks. Contraction to fused multiply-add must be off.
#ifndef GL_NUMERICS_H
#define GL_NUMERICS_H
#include "cpu.h"
#include "simd.h"

INLINE v8f nexp(v8f x) {
    v8i under = x < vset(-87.33f);
    x = vsel(x > vset(88.0f), vset(88.0f), x);
    v8f n = x * vset(1.44269504088896341f) + vset(12582912.0f);
    n = n - vset(12582912.0f);
    v8f r = x - n * vset(0.693359375f);
    r = r - n * vset(-2.12194440e-4f);
    v8f p = vset(1.9875691500e-4f);
    p = p * r + vset(1.3981999507e-3f);
    p = p * r + vset(8.3334519073e-3f);
    p = p * r + vset(4.1665795894e-2f);
    p = p * r + vset(1.6666665459e-1f);
    p = p * r + vset(5.0000001201e-1f);
    p = p * (r * r);
    p = (p + r) + vset(1.0f);
    v8u bits = (v8u)p + ((v8u)__builtin_convertvector(n, v8i) << 23);
    return (v8f)((v8i)bits & ~under);
}

INLINE v8f nrecip(v8f x) {
    v8f r = (v8f)((v8u)vseti(0x7EF311C7) - (v8u)x);
    for (int i = 0; i < 4; i++) {
        v8f e = vset(1.0f) - x * r;
        r = r + r * e;
    }
    return r;
}

INLINE v8f nrsqrt(v8f x) {
    v8f r = (v8f)((v8u)vseti(0x5F375A86) - ((v8u)x >> 1));
    v8f h = vset(0.5f) * x;
    for (int i = 0; i < 3; i++) {
        v8f t = h * r;
        r = r * (vset(1.5f) - t * r);
    }
    return r;
}

INLINE v8f nln(v8f x) {
    v8u bits = (v8u)x;
    v8f e = vcvt((v8i)(bits >> 23) - 126);
    v8f m = (v8f)((bits & 0x007FFFFF) | 0x3F000000);
    v8i low = m < vset(0.707106781186547524f);
    e = vsel(low, e - vset(1.0f), e);
    m = vsel(low, m + m, m);
    m = m - vset(1.0f);
    v8f z = m * m;
    v8f p = vset(7.0376836292e-2f);
    p = p * m + vset(-1.1514610310e-1f);
    p = p * m + vset(1.1676998740e-1f);
    p = p * m + vset(-1.2420140846e-1f);
    p = p * m + vset(1.4249322787e-1f);
    p = p * m + vset(-1.6668057665e-1f);
    p = p * m + vset(2.0000714765e-1f);
    p = p * m + vset(-2.4999993993e-1f);
    p = p * m + vset(3.3333331174e-1f);
    v8f y = p * m * z;
    y = y + e * vset(-2.12194440e-4f);
    y = y - vset(0.5f) * z;
    return (m + y) + e * vset(0.693359375f);
}

INLINE v8f nneg(v8f x) { return (v8f)((v8u)x ^ 0x80000000u); }

INLINE v8f ntanh(v8f x) {
    v8f a = vsel(x < vset(0.0f), nneg(x), x);
    v8f z = x * x;
    v8f p = vset(-5.70498872745e-3f);
    p = p * z + vset(2.06390887954e-2f);
    p = p * z + vset(-5.37397155531e-2f);
    p = p * z + vset(1.33314422036e-1f);
    p = p * z + vset(-3.33332819422e-1f);
    v8f small = x + (p * z) * x;
    v8f t = vset(1.0f) - vset(2.0f) * nrecip(nexp(a + a) + vset(1.0f));
    t = vsel(a < vset(9.0f), t, vset(1.0f));
    t = vsel(x < vset(0.0f), nneg(t), t);
    return vsel(a < vset(0.625f), small, t);
}

INLINE v8f nsigmoid(v8f x) {
    v8i pos = x >= vset(0.0f);
    v8f e = nexp(vsel(pos, nneg(x), x));
    v8f r = nrecip(vset(1.0f) + e);
    return vsel(pos, r, e * r);
}

INLINE v8f nsoftplus(v8f x) { return vsel(x > vset(20.0f), x, nln(vset(1.0f) + nexp(x))); }

INLINE v8f nerf(v8f x) {
    v8f a = vsel(x < vset(0.0f), nneg(x), x);
    v8f t = nrecip(vset(1.0f) + vset(0.3275911f) * a);
    v8f p = vset(1.061405429f);
    p = p * t - vset(1.453152027f);
    p = p * t + vset(1.421413741f);
    p = p * t - vset(0.284496736f);
    p = p * t + vset(0.254829592f);
    v8f y = vset(1.0f) - (p * t) * nexp(nneg(a * a));
    return vsel(x < vset(0.0f), nneg(y), y);
}

INLINE v8f nrelu(v8f x) { return (v8f)((v8i)x & ~(x <= vset(0.0f))); } // NaN stays

INLINE v8f ngelu(v8f x) {
    v8f in = vset(0.044715f) * (x * x) + vset(1.0f);
    in = (vset(0.79788456080286535588f) * x) * in;
    return (vset(0.5f) * x) * (vset(1.0f) + ntanh(in));
}

INLINE v8f nact(const int act, v8f x) {
    switch (act) {
    case ACT_SILU: return x * nsigmoid(x);
    case ACT_GELU: return ngelu(x);
    case ACT_GELUHALF: {
        v8f y = vroundhalf(ngelu(vroundhalf(x)));
        return vsel(x >= vset(10.0f), x, (v8f)((v8i)y & ~(x <= vset(-10.0f))));
    }
    case ACT_GELUERF: return (vset(0.5f) * x) * (vset(1.0f) + nerf(x * vset(0.70710678118654752440f)));
    case ACT_GELUQUICK: return x * nsigmoid(vset(1.702f) * x);
    case ACT_RELU: return nrelu(x);
    case ACT_RELU2: { v8f r = nrelu(x); return r * r; }
    case ACT_SIGMOID: return nsigmoid(x);
    case ACT_TANH: return ntanh(x);
    case ACT_SOFTPLUS: return nsoftplus(x);
    case ACT_EXP: return nexp(x);
    }
    return x;
}

INLINE float exp1(float x) { return nexp(vset(x))[0]; }
INLINE float recip1(float x) { return nrecip(vset(x))[0]; }
INLINE float rsqrt1(float x) { return nrsqrt(vset(x))[0]; }
INLINE float ln1(float x) { return nln(vset(x))[0]; }
INLINE float act1(int act, float x) { return nact(act, vset(x))[0]; }

// ndot and nsum are ops.Dot and ops.Sum. Padding with zeros changes no bit: a lane
// starts at +0 and can never become -0.
INLINE float ndot(const float *a, const float *b, int n) {
    v8f l = vset(0), h = vset(0);
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        l = l + vload(a + i) * vload(b + i);
        h = h + vload(a + i + 8) * vload(b + i + 8);
    }
    if (i < n) {
        l = l + vgetn(a + i, n - i) * vgetn(b + i, n - i);
        if (n - i > 8) h = h + vgetn(a + i + 8, n - i - 8) * vgetn(b + i + 8, n - i - 8);
    }
    return fold(l, h);
}

INLINE float nsum(const float *a, int n) {
    v8f l = vset(0), h = vset(0);
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        l = l + vload(a + i);
        h = h + vload(a + i + 8);
    }
    if (i < n) {
        l = l + vgetn(a + i, n - i);
        if (n - i > 8) h = h + vgetn(a + i + 8, n - i - 8);
    }
    return fold(l, h);
}

#endif
