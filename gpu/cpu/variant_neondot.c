// variant_neondot.c: the kernels for 64-bit ARM with byte dot products (ARMv8.2 and later).
#if defined(__aarch64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#define GL_AVX2 0
#define GL_AVX512 0
#define GL_NEON 1
#define GL_DOT4 1
#define GL_NAME "neondot"
#include "variant.h"
const gl_kernels *gl_neondot(void) { return &KERNELS; }
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
