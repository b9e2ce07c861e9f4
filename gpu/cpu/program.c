// program.c: the thread pool and the loop that replays a compiled program.
//
// All threads walk the same list of operations and divide each among themselves;
// barriers stand only where an operation needs what another thread made. A barrier
// spins for some microseconds, then sleeps: an idle server burns nothing, and a
// descheduled peer costs no more than the spin.
#include "cpu.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#endif

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ __volatile__("yield")
#else
#define PAUSE() ((void)0)
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

enum { SPINS = 1500 }; // some 30 to 60 microseconds

struct gl_pool {
    atomic_int threads; // the caller included
    pthread_t *ids;
    const gl_kernels *kernels;
    gl_prog *prog; // NULL: stop

    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_uint generation;
    _Alignas(64) atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Alignas(64) atomic_int next_id;
};

// The pool of the running program is found through the program's thread: each thread
// serves one pool for its life, and a caller one program at a time.
static _Thread_local struct gl_pool *current;

// wait_all returns when every thread of the pool has called it. The last to arrive
// stores the generation before it looks for sleepers, a sleeper counts itself before
// it looks at the generation: one of them sees the other.
static void wait_all(struct gl_pool *b) {
    if (b->threads == 1) return;
    unsigned g = atomic_load(&b->generation);
    if (atomic_fetch_add(&b->arrived, 1) + 1 == b->threads) {
        atomic_store(&b->arrived, 0);
        atomic_store(&b->generation, g + 1);
        if (atomic_load(&b->sleepers) > 0) {
            pthread_mutex_lock(&b->lock);
            pthread_cond_broadcast(&b->wake);
            pthread_mutex_unlock(&b->lock);
        }
        return;
    }
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&b->generation, memory_order_acquire) != g) return;
        PAUSE();
    }
    pthread_mutex_lock(&b->lock);
    atomic_fetch_add(&b->sleepers, 1);
    while (atomic_load(&b->generation) == g) pthread_cond_wait(&b->wake, &b->lock);
    atomic_fetch_sub(&b->sleepers, 1);
    pthread_mutex_unlock(&b->lock);
}

void gl_barrier(const gl_prog *p) {
    (void)p;
    wait_all(current);
}

// divided tells whether rows are shared out; see r_rows.
static int divided(const gl_prog *p) { return p->rows >= 2 * p->threads; }

static void walk(struct gl_pool *pool, int tid) {
    const gl_prog *p = pool->prog;
    for (int i = 0; i < p->nops; i++) {
        const gl_op *op = p->ops + i;
        if (op->kind == GL_OP_LOWRANK && !p->active[op->i[0]]) continue; // a barrier follows in any case
        if (op->sync == GL_SYNC_ALWAYS || (op->sync == GL_SYNC_DIVIDED && divided(p))) wait_all(pool);
        pool->kernels->ops[op->kind](p, op, tid);
    }
    wait_all(pool);
}

static void *work(void *arg) {
    struct gl_pool *pool = arg;
    current = pool;
    int tid = atomic_fetch_add(&pool->next_id, 1);
    for (;;) {
        wait_all(pool);
        if (!pool->prog) return NULL;
        walk(pool, tid);
    }
}

struct gl_pool *gl_pool_new(int threads) {
    struct gl_pool *p = gl_map(sizeof *p, 0); // a page: aligned and zero
    if (!p) return NULL;
    p->ids = calloc((size_t)threads, sizeof *p->ids);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    atomic_store(&p->next_id, 1);
    p->threads = threads;
    for (int t = 1; p->ids && t < threads; t++)
        if (pthread_create(&p->ids[t], NULL, work, p) != 0) {
            // The started ones wait for a barrier that counts the missing ones: let it
            // count those that exist, and stop them.
            p->threads = t;
            gl_pool_free(p);
            return NULL;
        }
    if (!p->ids) {
        gl_unmap(p, sizeof *p);
        return NULL;
    }
    return p;
}

void gl_pool_free(struct gl_pool *p) {
    if (!p) return;
    p->prog = NULL;
    wait_all(p);
    for (int t = 1; t < p->threads; t++) pthread_join(p->ids[t], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    free(p->ids);
    gl_unmap(p, sizeof *p);
}

void gl_run(struct gl_pool *pool, const gl_kernels *k, gl_prog *p, const int32_t *tokens, const int32_t *pos,
            const int32_t *slot, const int32_t *outs, const int32_t *pages, const float *embeds, int rows, int nouts) {
    p->tokens = tokens, p->pos = pos, p->slot = slot, p->outs = outs, p->pages = pages, p->embeds = embeds;
    p->rows = rows, p->nouts = nouts;
    memset(p->counters, 0, (size_t)p->nops * 64);
    pool->kernels = k;
    pool->prog = p;
    current = pool;
    wait_all(pool);
    walk(pool, 0);
    current = NULL;
}

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
