// pool.c: the thread pool and the loop that replays a compiled program.
//
// All threads of a job walk the same list of operations and divide each among
// themselves; barriers stand only where an operation needs what another thread made. A
// thread that waits spins for some microseconds, then sleeps: an idle server burns
// nothing, and a descheduled peer costs no more than the spin.
//
// A job may take fewer threads than the pool has; the others sleep through it. How long
// the threads of a job were ready to run and did not is measured, so that the caller can
// give way when another process wants their processors (pace.go).
#include "cpu.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ __volatile__("yield")
#else
#define PAUSE() ((void)0)
#endif

enum { SPINS = 1500 }; // some 30 to 60 microseconds

// gl_signal is a number that threads wait on until it changes.
typedef struct {
    _Alignas(64) atomic_ullong value;
    _Alignas(64) atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
} gl_signal;

// gl_worker is what is known of one thread.
typedef struct {
    _Alignas(64) pthread_t id;
    int64_t slept;  // in barriers of this job, ns
    int64_t ran;    // processor time at the end of its last job
    int64_t stolen; // of the job: what is neither
} gl_worker;

struct gl_pool {
    int threads; // the caller included
    gl_worker *workers;
    const gl_kernels *kernels;
    gl_prog *prog; // NULL: stop
    int64_t posted; // when the job was

    gl_signal job; // number of the job << 16 | its threads
    gl_signal generation;
    _Alignas(64) atomic_int arrived;
    atomic_int next_id;
    int active; // threads of the job
    int stopped; // the job ends early: what all its threads were told at the last barrier
};

// The pool of the running program is found through the program's thread: each thread
// serves one pool for its life, and a caller one program at a time.
static _Thread_local struct gl_pool *current;
static _Thread_local gl_worker *self;

static int64_t nanoseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void signal_init(gl_signal *s) {
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
}

static void signal_free(gl_signal *s) {
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
}

// signal_set changes the number and wakes who waits for that. It stores before it looks
// for sleepers, a sleeper counts itself before it looks at the number: one of them sees
// the other.
static void signal_set(gl_signal *s, unsigned long long v) {
    atomic_store(&s->value, v);
    if (atomic_load(&s->sleepers) == 0) return;
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

// signal_wait returns the number when it is not old any more, and adds the time it slept
// to *slept.
static unsigned long long signal_wait(gl_signal *s, unsigned long long old, int64_t *slept) {
    for (int i = 0; i < SPINS; i++) {
        unsigned long long v = atomic_load_explicit(&s->value, memory_order_acquire);
        if (v != old) return v;
        PAUSE();
    }
    const int64_t from = nanoseconds(CLOCK_MONOTONIC);
    pthread_mutex_lock(&s->lock);
    atomic_fetch_add(&s->sleepers, 1);
    while (atomic_load(&s->value) == old) pthread_cond_wait(&s->wake, &s->lock);
    atomic_fetch_sub(&s->sleepers, 1);
    pthread_mutex_unlock(&s->lock);
    *slept += nanoseconds(CLOCK_MONOTONIC) - from;
    return atomic_load(&s->value);
}

// wait_all returns when every thread of the job has called it. The last one looks whether the
// job is to end early, for all of them have to leave at the same operation.
static void wait_all(struct gl_pool *b) {
    const int active = b->active; // once this thread has arrived the next job may change it
    if (active == 1) {
        b->stopped = gl_stopped(b->prog);
        return;
    }
    unsigned long long g = atomic_load(&b->generation.value);
    if (atomic_fetch_add(&b->arrived, 1) + 1 == active) {
        b->stopped = gl_stopped(b->prog);
        atomic_store(&b->arrived, 0);
        signal_set(&b->generation, g + 1);
        return;
    }
    signal_wait(&b->generation, g, &self->slept);
}

void gl_barrier(const gl_prog *p) {
    (void)p;
    wait_all(current);
}

// divided tells whether rows are shared out; see r_rows.
static int divided(const gl_prog *p) { return p->rows >= 2 * p->threads; }

static void walk(struct gl_pool *pool, int tid) {
    const gl_prog *p = pool->prog;
    gl_worker *w = self;
    w->slept = 0;
    for (int i = 0; i < p->nops; i++) {
        const gl_op *op = p->ops + i;
        if (op->kind == GL_OP_LOWRANK && !p->active[op->i[0]]) continue; // a barrier follows in any case
        if (op->sync == GL_SYNC_ALWAYS || (op->sync == GL_SYNC_DIVIDED && divided(p))) {
            wait_all(pool);
            if (pool->stopped) break;
        }
        pool->kernels->ops[op->kind](p, op, tid);
    }
    // A worker that was woken late was kept from running as well: its time counts from
    // the posting of the job. What it spun before that is in ran, and may hide as much.
    const int64_t ran = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    w->stolen = nanoseconds(CLOCK_MONOTONIC) - pool->posted - (ran - w->ran) - w->slept;
    wait_all(pool);
    w->ran = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

static void *work(void *arg) {
    struct gl_pool *pool = arg;
    current = pool;
    int tid = atomic_fetch_add(&pool->next_id, 1);
    self = &pool->workers[tid];
    unsigned long long job = 0;
    for (int64_t idle = 0;;) {
        job = signal_wait(&pool->job, job, &idle);
        const int active = (int)(job & 0xffff);
        if (active == 0) return NULL;
        if (tid < active) walk(pool, tid);
    }
}

// post starts a job; none of its threads is in an earlier one.
static void post(struct gl_pool *p, int active) {
    p->active = active;
    p->posted = nanoseconds(CLOCK_MONOTONIC);
    signal_set(&p->job, ((atomic_load(&p->job.value) >> 16) + 1) << 16 | (unsigned)active);
}

struct gl_pool *gl_pool_new(int threads) {
    struct gl_pool *p = gl_map(sizeof *p, 0); // pages: aligned and zero
    if (!p) return NULL;
    p->workers = gl_map((int64_t)threads * (int64_t)sizeof *p->workers, 0);
    if (!p->workers) {
        gl_unmap(p, sizeof *p);
        return NULL;
    }
    signal_init(&p->job);
    signal_init(&p->generation);
    atomic_store(&p->next_id, 1);
    p->threads = 1;
    for (; p->threads < threads; p->threads++)
        if (pthread_create(&p->workers[p->threads].id, NULL, work, p) != 0) {
            gl_pool_free(p);
            return NULL;
        }
    return p;
}

void gl_pool_free(struct gl_pool *p) {
    if (!p) return;
    post(p, 0);
    for (int t = 1; t < p->threads; t++) pthread_join(p->workers[t].id, NULL);
    signal_free(&p->job);
    signal_free(&p->generation);
    gl_unmap(p->workers, (int64_t)p->threads * (int64_t)sizeof *p->workers);
    gl_unmap(p, sizeof *p);
}

int64_t gl_run(struct gl_pool *pool, const gl_kernels *k, gl_prog *p, int threads, const int32_t *tokens, const int32_t *pos,
               const int32_t *slot, const int32_t *outs, const int32_t *pages, const float *embeds, const int32_t *rotary,
               const int32_t *spans, const int32_t *stop, int rows, int nouts) {
    p->tokens = tokens, p->pos = pos, p->slot = slot, p->outs = outs, p->pages = pages, p->embeds = embeds;
    p->rotary = rotary, p->spans = spans, p->stop = stop;
    p->rows = rows, p->nouts = nouts, p->threads = threads < pool->threads ? threads : pool->threads;
    memset(p->counters, 0, (size_t)p->nops * 64);
    pool->kernels = k;
    pool->prog = p;
    pool->stopped = 0;
    current = pool;
    self = &pool->workers[0];
    self->ran = nanoseconds(CLOCK_THREAD_CPUTIME_ID); // of whatever thread calls
    post(pool, p->threads);
    walk(pool, 0);
    current = NULL;
    p->stop = NULL;
    int64_t most = 0;
    for (int t = 0; t < p->threads; t++)
        if (pool->workers[t].stolen > most) most = pool->workers[t].stolen;
    return most;
}
