// pack.c: the file's blocks to tiles of eight interleaved rows, once at load. The
// layouts are drawn in doc.go; k_quant.h reads them.
#include "cpu.h"
#include <string.h>

static uint16_t u16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static uint32_t u32(const void *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }

// What each layout costs: scale bytes per group of blocks and bits per quant.
static const struct {
    uint8_t bits, group; // group: blocks of 32 per scale record
    int16_t scale;       // bytes of a record for eight rows
} shape[GL_LAYOUTS] = {
    [GL_Q8] = {8, 1, 16},   [GL_Q8C] = {8, 1, 64},  [GL_Q4] = {4, 1, 16},   [GL_Q4M] = {4, 1, 32},
    [GL_Q5] = {5, 1, 16},   [GL_Q5M] = {5, 1, 32},  [GL_Q2K] = {2, 8, 160}, [GL_Q3K] = {3, 8, 144},
    [GL_Q4K] = {4, 8, 160}, [GL_Q5K] = {5, 8, 160}, [GL_Q6K] = {6, 8, 144}, [GL_NL4] = {4, 1, 16},
    [GL_XS4] = {4, 8, 80},  [GL_MX4] = {4, 1, 32},
};

static int64_t scale_bytes(int layout, int cols) {
    int64_t n = (int64_t)(cols / 32 / shape[layout].group) * shape[layout].scale;
    return (n + 63) & ~(int64_t)63;
}

int64_t gl_tile_bytes(int layout, int cols) { return scale_bytes(layout, cols) + (int64_t)cols * shape[layout].bits; }

int gl_layout_of(int type) {
    switch (type) {
    case 2: return GL_Q4;
    case 3: return GL_Q4M;
    case 6: return GL_Q5;
    case 7: return GL_Q5M;
    case 8: return GL_Q8;
    case 10: return GL_Q2K;
    case 11: return GL_Q3K;
    case 12: return GL_Q4K;
    case 13: return GL_Q5K;
    case 14: return GL_Q6K;
    case 20: return GL_NL4;
    case 23: return GL_XS4;
    case 39: return GL_MX4;
    }
    return -1;
}

// put_quants stores the 32 codes of row r of a block into the planes.
static void put_quants(int bits, uint8_t *q, int r, const uint8_t *code) {
    uint32_t w[8];
    memcpy(w, code, 32);
    if (bits == 8) {
        for (int g = 0; g < 8; g++) put32(q + 32 * g + 4 * r, w[g]);
        return;
    }
    uint32_t pair[2] = {0}, bit = 0;
    if (bits <= 3) {
        for (int g = 0; g < 8; g++) {
            pair[g / 4] |= (w[g] & 0x03030303) << (2 * (g % 4));
            bit |= (w[g] >> 2 & 0x01010101) << g;
        }
        put32(q + 4 * r, pair[0]);
        put32(q + 32 + 4 * r, pair[1]);
        if (bits == 3) put32(q + 64 + 4 * r, bit);
        return;
    }
    for (int g = 0; g < 4; g++) put32(q + 32 * g + 4 * r, (w[g] & 0x0f0f0f0f) | (w[g + 4] & 0x0f0f0f0f) << 4);
    for (int g = 0; g < 8; g++) {
        pair[g / 4] |= (w[g] >> 4 & 0x03030303) << (2 * (g % 4));
        bit |= (w[g] >> 4 & 0x01010101) << g;
    }
    if (bits == 5) put32(q + 128 + 4 * r, bit);
    if (bits == 6) {
        put32(q + 128 + 4 * r, pair[0]);
        put32(q + 160 + 4 * r, pair[1]);
    }
}

static void nibbles(const uint8_t *p, uint8_t *code) {
    for (int j = 0; j < 16; j++) {
        code[j] = p[j] & 15;
        code[j + 16] = p[j] >> 4;
    }
}

static void fifths(uint32_t h, uint8_t *code) {
    for (int j = 0; j < 32; j++) code[j] |= (uint8_t)((h >> j & 1) << 4);
}

// pack_32 packs one block of 32 values of row r; sc is the block's scale record.
static void pack_32(int type, const uint8_t *p, int r, uint8_t *sc, uint8_t *q, int bits) {
    uint8_t code[32];
    switch (type) {
    case 2: case 20: // Q4_0, IQ4_NL
        memcpy(sc + 2 * r, p, 2);
        nibbles(p + 2, code);
        break;
    case 3: case 7: // Q4_1, Q5_1
        memcpy(sc + 2 * r, p, 2);
        memcpy(sc + 16 + 2 * r, p + 2, 2);
        nibbles(type == 3 ? p + 4 : p + 8, code);
        if (type == 7) fifths(u32(p + 4), code);
        break;
    case 6: // Q5_0
        memcpy(sc + 2 * r, p, 2);
        nibbles(p + 6, code);
        fifths(u32(p + 2), code);
        break;
    case 8: // Q8_0
        memcpy(sc + 2 * r, p, 2);
        put_quants(8, q, r, p + 2);
        return;
    default: // MXFP4: 2^(e-127)/2; below 2^-45 it counts as 0 (ops.SmallestE8M0)
        put32(sc + 4 * r, p[0] < 83 ? 0 : (uint32_t)(p[0] - 1) << 23);
        nibbles(p + 1, code);
    }
    put_quants(bits, q, r, code);
}

static void scale_min(const uint8_t *s, int g, uint8_t *sc, uint8_t *mn) {
    if (g < 4) {
        *sc = s[g] & 63;
        *mn = s[g + 4] & 63;
    } else {
        *sc = (uint8_t)((s[g + 4] & 15) | s[g - 4] >> 6 << 4);
        *mn = (uint8_t)(s[g + 4] >> 4 | s[g] >> 6 << 4);
    }
}

// pack_256 packs one super-block of row r: 8 blocks of 32.
static void pack_256(int type, const uint8_t *p, int r, uint8_t *sc, uint8_t *q, int bits) {
    uint8_t code[32];
    for (int g = 0; g < 8; g++, q += 32 * bits) {
        switch (type) {
        case 10: { // Q2_K
            if (g == 0) memcpy(sc + 2 * r, p + 80, 2), memcpy(sc + 16 + 2 * r, p + 82, 2);
            sc[32 + 16 * g + r] = p[2 * g];
            sc[40 + 16 * g + r] = p[2 * g + 1];
            const uint8_t *b = p + 16 + 32 * (g / 4);
            for (int j = 0; j < 32; j++) code[j] = b[j] >> (2 * (g % 4)) & 3;
            break;
        }
        case 11: { // Q3_K
            if (g == 0) memcpy(sc + 2 * r, p + 108, 2);
            const uint8_t *s = p + 96, *b = p + 32 + 32 * (g / 4);
            for (int h = 2 * g; h < 2 * g + 2; h++) {
                int v = (s[h % 8] >> (4 * (h / 8)) & 15) | (s[8 + h % 4] >> (2 * (h / 4)) & 3) << 4;
                sc[16 + 8 * h + r] = (uint8_t)(v - 32);
            }
            for (int j = 0; j < 32; j++) code[j] = (uint8_t)((b[j] >> (2 * (g % 4)) & 3) | (p[j] >> g & 1) << 2);
            break;
        }
        case 12: case 13: { // Q4_K, Q5_K
            if (g == 0) memcpy(sc + 2 * r, p, 2), memcpy(sc + 16 + 2 * r, p + 2, 2);
            scale_min(p + 4, g, sc + 32 + 8 * g + r, sc + 96 + 8 * g + r);
            const uint8_t *b = (type == 13 ? p + 48 : p + 16) + 32 * (g / 2);
            for (int j = 0; j < 32; j++) code[j] = b[j] >> (4 * (g % 2)) & 15;
            if (type == 13)
                for (int j = 0; j < 32; j++) code[j] |= (uint8_t)((p[16 + j] >> g & 1) << 4);
            break;
        }
        case 14: { // Q6_K
            if (g == 0) memcpy(sc + 2 * r, p + 208, 2);
            sc[16 + 16 * g + r] = p[192 + 2 * g];
            sc[24 + 16 * g + r] = p[192 + 2 * g + 1];
            const uint8_t *l = p + 64 * (g / 4) + 32 * (g % 2), *h = p + 128 + 32 * (g / 4);
            for (int j = 0; j < 32; j++) code[j] = (uint8_t)((l[j] >> (4 * (g / 2 % 2)) & 15) | (h[j] >> (2 * (g % 4)) & 3) << 4);
            break;
        }
        default: { // IQ4_XS
            if (g == 0) memcpy(sc + 2 * r, p, 2);
            int v = (p[4 + g / 2] >> (4 * (g % 2)) & 15) | (u16(p + 2) >> (2 * g) & 3) << 4;
            sc[16 + 8 * g + r] = (uint8_t)(v - 32);
            nibbles(p + 8 + 16 * g, code);
        }
        }
        put_quants(bits, q, r, code);
    }
}

void gl_pack(const gl_weight *w, int64_t t0, int64_t t1) {
    const int bits = shape[w->layout].bits, group = shape[w->layout].group, step = gl_block_bytes(w->type);
    const int n = w->cols / (32 * group);
    for (int64_t t = t0; t < t1; t++) {
        int64_t expert = t / w->tiles, row = t % w->tiles * GL_TILE;
        uint8_t *tile = w->packed + t * w->tile_bytes, *quants = tile + scale_bytes(w->layout, w->cols);
        // Rows beyond the matrix stay zero: a zero scale makes their sums zero.
        for (int r = 0; r < GL_TILE && row + r < w->rows; r++) {
            const uint8_t *p = w->data + (expert * w->rows + row + r) * w->row_bytes;
            for (int b = 0; b < n; b++, p += step) {
                uint8_t *sc = tile + b * shape[w->layout].scale, *q = quants + (int64_t)b * 32 * group * bits;
                if (group == 1) pack_32(w->type, p, r, sc, q, bits);
                else pack_256(w->type, p, r, sc, q, bits);
            }
        }
    }
}

void gl_pack_codes(uint8_t *tile, int r, const int8_t *codes, const float *scales, int cols) {
    uint8_t *quants = tile + scale_bytes(GL_Q8C, cols);
    for (int b = 0; b < cols / 32; b++) {
        memcpy(tile + 64 * b + 4 * r, scales + 2 * b, 4);
        memcpy(tile + 64 * b + 32 + 4 * r, scales + 2 * b + 1, 4);
        put_quants(8, quants + 256 * (int64_t)b, r, (const uint8_t *)codes + 32 * b);
    }
}
