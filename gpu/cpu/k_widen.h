// k_widen.h: blocks to float32, as gpu/tensor does it bit for bit. The scales of the
// K formats times their small integers are exact in float32, so only the roundings
// that Go writes are left. Types without a body here go through Go (widen_go).
#include "cpu.h"
#include "simd.h"

extern int gl_widen_go(int type, uint8_t *src, int64_t bytes, float *dst, int n);

INLINE uint16_t u16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
INLINE uint32_t u32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }


// e8m0 is 2^(e-127)/2, as tensor's halfE8M0.
INLINE float e8m0(uint8_t e) {
    uint32_t b = e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23;
    float f;
    memcpy(&f, &b, 4);
    return f;
}

// w_store widens 32 small integers: d·q, less m when there is a minimum.
INLINE void w_store(float *dst, const int8_t *q, float d, float m, const int has_min) {
    for (int i = 0; i < 4; i++) {
        v8f v = vset(d) * vcvt(vs8(q + 8 * i));
        vstore(dst + 8 * i, has_min ? v + vset(m) : v);
    }
}

INLINE void w_scale_min(const uint8_t *s, int g, float *sc, float *mn) {
    if (g < 4) {
        *sc = (float)(s[g] & 63);
        *mn = (float)(s[g + 4] & 63);
    } else {
        *sc = (float)((s[g + 4] & 15) | s[g - 4] >> 6 << 4);
        *mn = (float)(s[g + 4] >> 4 | s[g] >> 6 << 4);
    }
}

static void widen_32(int type, const uint8_t *p, float *dst) {
    int8_t q[32];
    float d = half1(u16(p)), m = 0;
    switch (type) {
    case 2: // Q4_0
        for (int j = 0; j < 16; j++) q[j] = (int8_t)((p[2 + j] & 15) - 8), q[j + 16] = (int8_t)((p[2 + j] >> 4) - 8);
        break;
    case 3: // Q4_1
        m = half1(u16(p + 2));
        for (int j = 0; j < 16; j++) q[j] = p[4 + j] & 15, q[j + 16] = p[4 + j] >> 4;
        break;
    case 6: { // Q5_0
        uint32_t h = u32(p + 2);
        for (int j = 0; j < 16; j++) {
            q[j] = (int8_t)(((p[6 + j] & 15) | (h >> j & 1) << 4) - 16);
            q[j + 16] = (int8_t)((p[6 + j] >> 4 | (h >> (j + 16) & 1) << 4) - 16);
        }
        break;
    }
    case 7: { // Q5_1
        uint32_t h = u32(p + 4);
        m = half1(u16(p + 2));
        for (int j = 0; j < 16; j++) {
            q[j] = (int8_t)((p[8 + j] & 15) | (h >> j & 1) << 4);
            q[j + 16] = (int8_t)(p[8 + j] >> 4 | (h >> (j + 16) & 1) << 4);
        }
        break;
    }
    default: // Q8_0
        memcpy(q, p + 2, 32);
    }
    if (type == 3 || type == 7) w_store(dst, q, d, m, 1);
    else w_store(dst, q, d, 0, 0);
}

static void widen_q4k(const uint8_t *p, float *dst, const int bits) {
    float d = half1(u16(p)), dmin = half1(u16(p + 2));
    const uint8_t *scales = p + 4, *high = p + 16, *qs = bits == 5 ? p + 48 : p + 16;
    for (int g = 0; g < 8; g++) {
        float sc, mn;
        int8_t q[32];
        w_scale_min(scales, g, &sc, &mn);
        for (int j = 0; j < 32; j++) {
            q[j] = (int8_t)(qs[32 * (g / 2) + j] >> (4 * (g % 2)) & 15);
            if (bits == 5) q[j] |= (int8_t)((high[j] >> g & 1) << 4);
        }
        w_store(dst + 32 * g, q, d * sc, -(dmin * mn), 1);
    }
}

static void widen_q6k(const uint8_t *p, float *dst) {
    const uint8_t *low = p, *high = p + 128;
    const int8_t *scales = (const int8_t *)p + 192;
    float d = half1(u16(p + 208));
    for (int r = 0; r < 8; r++) {
        const uint8_t *l = low + 64 * (r / 4) + 32 * (r % 2), *h = high + 32 * (r / 4);
        int8_t q[32];
        for (int j = 0; j < 32; j++) q[j] = (int8_t)(((l[j] >> (4 * (r / 2 % 2)) & 15) | (h[j] >> (2 * (r % 4)) & 3) << 4) - 32);
        for (int i = 0; i < 4; i++) {
            float s = d * (float)scales[2 * r + i / 2];
            vstore(dst + 32 * r + 8 * i, vset(s) * vcvt(vs8(q + 8 * i)));
        }
    }
}

static void widen(int type, const uint8_t *src, int64_t bytes, float *dst, int n) {
    static const uint8_t size32[9] = {[2] = 18, [3] = 20, [6] = 22, [7] = 24, [8] = 34};
    int i = 0;
    switch (type) {
    case 0: memcpy(dst, src, (size_t)n * 4); break;
    case 1:
        for (; i + 8 <= n; i += 8) vstore(dst + i, vhalf(src + 2 * i));
        for (; i < n; i++) dst[i] = half1(u16(src + 2 * i));
        break;
    case 30:
        for (; i < n; i++) {
            uint32_t b = (uint32_t)u16(src + 2 * i) << 16;
            memcpy(dst + i, &b, 4);
        }
        break;
    case 2: case 3: case 6: case 7: case 8:
        for (; i < n; i += 32, src += size32[type]) widen_32(type, src, dst + i);
        break;
    case 12: for (; i < n; i += 256, src += 144) widen_q4k(src, dst + i, 4); break;
    case 13: for (; i < n; i += 256, src += 176) widen_q4k(src, dst + i, 5); break;
    case 14: for (; i < n; i += 256, src += 210) widen_q6k(src, dst + i); break;
    default: gl_widen_go(type, (uint8_t *)src, bytes, dst, n);
    }
}
