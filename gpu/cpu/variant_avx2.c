// variant_avx2.c: the kernels for x86 with AVX2, FMA and F16C (Haswell, Zen and later).
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#define GL_AVX512 0
#define GL_NEON 0
#define GL_DOT4 0
#define GL_AVX2 1
#define GL_NAME "avx2"
#include "variant.h"
const gl_kernels *gl_avx2(void) { return &KERNELS; }
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
