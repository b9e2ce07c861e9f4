// variant_plain.c: the kernels for every machine, in what the compiler makes of the
// vector types (SSE2 on amd64, NEON on arm64).
#define GL_AVX512 0
#define GL_NEON 0
#define GL_DOT4 0
#define GL_AVX2 0
#define GL_NAME "plain"
#include "variant.h"
const gl_kernels *gl_plain(void) { return &KERNELS; }
