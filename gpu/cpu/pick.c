// pick.c: the choice of the kernels and the memory they work on.
#include "cpu.h"
#include <string.h>
#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#endif

#if defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
static int has_dotprod(void) { return (getauxval(AT_HWCAP) >> 20 & 1) != 0; } // HWCAP_ASIMDDP
#elif defined(__APPLE__)
static int has_dotprod(void) { return 1; } // every Apple processor that runs macOS
#else
static int has_dotprod(void) { return 0; }
#endif
#endif

// gl_pick looks through the variants from the best to the one that always works.
const gl_kernels *gl_pick(const char *name) {
    const gl_kernels *all[3] = {NULL};
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    // The compiler's run-time support also asks whether the system saves the registers.
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni"))
        all[n++] = gl_avx512vnni();
    if (avx2) all[n++] = gl_avx2();
#elif defined(__aarch64__)
    if (has_dotprod()) all[n++] = gl_neondot();
    all[n++] = gl_neon();
#endif
    all[n++] = gl_plain();
    for (int i = 0; i < n; i++)
        if (*name == 0 || strcmp(name, all[i]->name) == 0) return all[i];
    return NULL;
}

#if defined(_WIN32)
void *gl_map(int64_t bytes, int huge) {
    (void)huge;
    return VirtualAlloc(NULL, (size_t)(bytes > 0 ? bytes : 1), MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void gl_unmap(void *p, int64_t bytes) {
    (void)bytes;
    if (p) VirtualFree(p, 0, MEM_RELEASE);
}
#else
void *gl_map(int64_t bytes, int huge) {
    if (bytes <= 0) bytes = 1;
    void *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
#if defined(MADV_HUGEPAGE)
    // Streams over 4 KiB pages stop the hardware prefetcher at every page.
    if (huge) madvise(p, (size_t)bytes, MADV_HUGEPAGE);
#endif
    (void)huge;
    return p;
}

void gl_unmap(void *p, int64_t bytes) {
    if (p) munmap(p, (size_t)(bytes > 0 ? bytes : 1));
}
#endif
