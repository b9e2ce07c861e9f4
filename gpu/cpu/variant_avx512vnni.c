// variant_avx512vnni.c: the kernels for x86 with AVX-512 and its byte dot products (Ice Lake,
// Zen 4 and later).
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")
#endif
#define GL_AVX2 1
#define GL_AVX512 1
#define GL_NEON 0
#define GL_DOT4 1
#define GL_NAME "avx512vnni"
#include "variant.h"
const gl_kernels *gl_avx512vnni(void) { return &KERNELS; }
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
