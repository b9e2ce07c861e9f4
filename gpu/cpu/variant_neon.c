// variant_neon.c: the kernels for 64-bit ARM without byte dot products.
#if defined(__aarch64__)
#define GL_AVX2 0
#define GL_AVX512 0
#define GL_NEON 1
#define GL_DOT4 0
#define GL_NAME "neon"
#include "variant.h"
const gl_kernels *gl_neon(void) { return &KERNELS; }
#endif
