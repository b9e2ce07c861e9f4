// cpu.h: what Go, the program interpreter and the kernels of each instruction set
// share. Go fills the structs once per program; a run only passes the batch.
#ifndef GL_CPU_H
#define GL_CPU_H
#include <stddef.h>
#include <stdint.h>

// gl_qblk is 32 activations rounded to signed bytes, one cache line. The sums are
// what subtracting a weight format's offset needs, computed once per block instead of
// once per weight row: lane 0 holds the values with k mod 4 < 2, lane 1 the others,
// as vdotus leaves them.
typedef struct {
    int8_t q[32];
    float d;        // scale: x ≈ d·q
    float s;        // d·Σq
    int16_t c[4];   // Σq by lane, first and second half of the block
    int16_t t8[2];  // -8·Σq by lane over the block
    int16_t t16[2]; // -16·Σq
    int16_t c32[4]; // -32·Σq, by half
} gl_qblk;

// gl_wblk is 32 activations as the whole numbers of exact mode (gpu/DESIGN.md, rule 2).
typedef struct {
    float s;    // scale
    float z[3]; // ΣX of the block and of its halves, rounded to float
    int32_t zh[2], zl[2]; // ΣX of each half = 4096·zh + zl
    int8_t d[3][32]; // X = 65536·d[2] + 256·d[1] + d[0]
    // X = 4096·H + L, of columns 4g…4g+3: H of columns 0, 2 and 1, 3, then L of them
    int16_t w[8][8];
} gl_wblk;

// The layouts a matrix can have in memory; doc.go draws them.
enum {
    GL_NONE, // no matrix
    GL_F32,  // the file's bytes, float kernels
    GL_F16,
    GL_BF16,
    GL_Q8, // packed layouts: GL_Q8 and above
    GL_Q8C,
    GL_Q4,
    GL_Q4M,
    GL_Q5,
    GL_Q5M,
    GL_Q2K,
    GL_Q3K,
    GL_Q4K,
    GL_Q5K,
    GL_Q6K,
    GL_NL4,
    GL_XS4,
    GL_MX4,
    GL_LAYOUTS
};

enum { GL_AXES = 3, GL_TILE = 8, GL_LANES = 8, GL_CHUNK = 256, GL_LSE = 1024, GL_MOE_ROWS = 16, GL_PAGE = 64, GL_CHUNK_PAGES = GL_CHUNK / GL_PAGE };

// The types of cached keys and values. A head of n values in GL_KV_Q8 is n signed bytes
// and then a half for each 32 of them, their scale.
enum { GL_KV_F16, GL_KV_F32, GL_KV_Q8, GL_KV_BLOCK = 32 };

// The activation functions, numbered as ops.Act; ACT_GELUHALF is GELU in exact mode.
enum {
    ACT_IDENTITY,
    ACT_SILU,
    ACT_GELU,
    ACT_GELUERF,
    ACT_GELUQUICK,
    ACT_RELU,
    ACT_RELU2,
    ACT_SIGMOID,
    ACT_TANH,
    ACT_SOFTPLUS,
    ACT_EXP,
    ACT_GELUHALF
};

// The element types of gpu/tensor that the C code knows, by their GGUF numbers.
enum {
    T_F32 = 0,
    T_F16 = 1,
    T_Q4_0 = 2,
    T_Q4_1 = 3,
    T_Q5_0 = 6,
    T_Q5_1 = 7,
    T_Q8_0 = 8,
    T_Q2_K = 10,
    T_Q3_K = 11,
    T_Q4_K = 12,
    T_Q5_K = 13,
    T_Q6_K = 14,
    T_IQ4_NL = 20,
    T_IQ4_XS = 23,
    T_BF16 = 30,
    T_MXFP4 = 39
};

// gl_block_bytes is the size of one block of a type.
static inline int gl_block_bytes(int type) {
    switch (type) {
    case T_F32: return 4;
    case T_F16: case T_BF16: return 2;
    case T_Q4_0: case T_IQ4_NL: return 18;
    case T_Q4_1: return 20;
    case T_Q5_0: return 22;
    case T_Q5_1: return 24;
    case T_Q8_0: return 34;
    case T_Q2_K: return 84;
    case T_Q3_K: return 110;
    case T_Q4_K: return 144;
    case T_Q5_K: return 176;
    case T_Q6_K: return 210;
    case T_IQ4_XS: return 136;
    case T_MXFP4: return 17;
    }
    return 0;
}

typedef struct {
    const uint8_t *data; // the file's bytes, row after row
    uint8_t *packed;     // tiles of 8 rows, NULL where data is used
    int64_t row_bytes, tile_bytes;
    int32_t type; // GGUF's number
    int32_t layout;
    int32_t cols, rows, experts;
    int32_t tiles; // per expert
} gl_weight;

// gl_view is a column range of a buffer: element off + row·stride of arena set.
typedef struct {
    int64_t off, stride;
    int32_t set, width;
} gl_view;

typedef struct {
    const gl_weight *w;
    const float *bias; // [rows], or NULL
    gl_view out;
} gl_mat;

typedef struct {
    int32_t mat, t0, t1;
} gl_chunk;

enum {
    GL_OP_EMBED,
    GL_OP_DEEPSTACK,
    GL_OP_ROWS,
    GL_OP_QUANT,
    GL_OP_MATMUL,
    GL_OP_RMSNORM,
    GL_OP_LAYERNORM,
    GL_OP_L2NORM,
    GL_OP_BINARY,
    GL_OP_ADDVEC,
    GL_OP_SCALE,
    GL_OP_UNARY,
    GL_OP_GLU,
    GL_OP_SOFTCAP,
    GL_OP_POSSCALE,
    GL_OP_ROPE,
    GL_OP_KVSTORE,
    GL_OP_ATTENTION,
    GL_OP_ROUTE,
    GL_OP_EXPERTMATMUL,
    GL_OP_EXPERTSUM,
    GL_OP_SHORTCONV,
    GL_OP_MAMBA1,
    GL_OP_MAMBA2,
    GL_OP_GATEDDELTA,
    GL_OP_LOWRANK,
    GL_OP_GATHER,
    GL_OP_HEADS,
    GL_OP_NONE, // holds parameters of the operation before
    GL_OPS
};

// How an operation is divided over threads.
enum {
    GL_BY_ROW, // rows of its row set, or thread 0 alone when there are few
    GL_BY_COL, // column ranges of every row
    GL_SERIAL, // thread 0
    GL_BY_TASK // the operation divides itself
};

// Whether a barrier stands before an operation.
enum { GL_SYNC_NONE, GL_SYNC_DIVIDED, GL_SYNC_ALWAYS };

typedef struct {
    int32_t kind, by, sync;
    gl_view in[5], out[2];
    const gl_weight *w;
    const float *vec[3];
    void *mem[2];    // KV cache or recurrent state
    int32_t i[9];
    float f[4];
    gl_mat *mats;
    gl_chunk *chunks;
    int32_t nmats, nchunks;
} gl_op;

// gl_head is what comes back for one output row.
typedef struct {
    int32_t best, bad; // bad: the first id with a logit that is not finite, or -1
    float max, lse;
    int32_t k; // read: how many best are wanted
    int32_t *ids;
    float *logits;
} gl_head;

struct gl_pool;

// gl_prog is a compiled program and, during a run, its batch.
typedef struct {
    gl_op *ops;
    int32_t nops, embed_width, embed_stride, nspans;
    int32_t exact, kv_type; // GL_KV_*, as ops.KVType
    int32_t slots, threads; // threads: of the run
    int32_t slot_pages; // entries of one slot's page table
    float *arena[2];
    uint8_t *quant;  // activations of the current quantised view: [rows][quant_stride] blocks
    int64_t quant_stride, quant_bytes; // blocks of a row; bytes of one: gl_qblk or in exact mode gl_wblk
    float *partial;  // attention partials of split rows
    float **scratch; // per thread
    float *head_part; // [outs][threads][2] and block sums
    gl_head *heads;   // [outs]
    int32_t *counters; // task counters, one cache line each, by operation
    const float *pos_scale; // [operation's number][rows]
    const float *scales;    // strengths of the adapters: [rows][adapters]
    const int32_t *active;  // [adapters] whether any row has a strength
    const int32_t *lists;   // of the batch, one after another
    float *mid;             // A·x of low-rank updates: [rows][mid_stride]
    int64_t mid_stride;
    int32_t adapters;

    const int32_t *tokens, *pos, *slot, *outs;
    const int32_t *pages; // [groups][slots][slot_pages]
    const float *embeds;
    const int32_t *rotary; // [rows][GL_AXES], or NULL
    const int32_t *spans;  // [rows][nspans][from, until], or NULL
    const int32_t *stop;   // not 0: the run ends early (ops.Stop); or NULL
    int32_t rows, nouts;
} gl_prog;

typedef void (*gl_run_op)(const gl_prog *p, const gl_op *op, int tid);

// What k_scan.h tells of a row of logits.
typedef struct {
    int64_t count, largest_at;
    double first, second;
    int32_t bad; // a logit is +Inf or NaN
} gl_moments;

typedef struct {
    double sum, distance;
} gl_mass;

// gl_kernels is what one instruction set provides.
typedef struct {
    const char *name;
    gl_run_op ops[GL_OPS];
    // mm multiplies tiles [t0, t1) of one expert with n rows of x and writes
    // y[row·ys + weight row]. x is gl_qblk (fast mode, [0]) or gl_wblk (exact mode, [1])
    // for packed layouts, float otherwise; xs is its stride in elements. scratch holds
    // GL_TILE rows of float.
    void (*mm[2][GL_LAYOUTS])(const gl_weight *w, int expert, int t0, int t1, const void *x, int64_t xs, int n,
                           const float *bias, float *y, int64_t ys, float *scratch);
    // Over rows of logits; rowstats (ScanMoments, ScanMass) and plugins/sampling (ScanLimit,
    // ScanAbove) have the definitions.
    gl_moments (*moments)(const float *row, int64_t n, float pivot, float *peaks);
    gl_mass (*mass)(const float *row, int64_t n, float top);
    float (*limit)(const float *peaks, int64_t count, int64_t n, float *spare);
    int64_t (*above)(int32_t *found, const float *row, int64_t n, const float *peaks, float limit);
} gl_kernels;

const gl_kernels *gl_plain(void);
const gl_kernels *gl_avx2(void);
const gl_kernels *gl_avx512vnni(void);
const gl_kernels *gl_neon(void);
const gl_kernels *gl_neondot(void);
const gl_kernels *gl_pick(const char *name); // "" picks the best; NULL when absent

// Packing (pack.c). gl_pack fills tiles [t0, t1), counted over all experts, from the
// file's bytes; gl_pack_codes one row of a tile as GL_Q8C.
int64_t gl_tile_bytes(int layout, int cols);
int gl_layout_of(int type); // packed layout of a GGUF type, or -1
void gl_pack(const gl_weight *w, int64_t t0, int64_t t1);
void gl_pack_codes(uint8_t *tile, int r, const int8_t *codes, const float *scales, int cols);

void *gl_map(int64_t bytes, int huge); // zeroed, committed when touched; NULL on failure
void gl_unmap(void *p, int64_t bytes);

struct gl_pool *gl_pool_new(int threads);
void gl_pool_free(struct gl_pool *pool);
// gl_run executes a program on the calling thread and, with it, threads of the pool's. It
// returns the longest time, in nanoseconds, that one of them was ready to run and did not.
// Once *stop is not 0 it leaves out what is left, and what it computed means nothing.
int64_t gl_run(struct gl_pool *pool, const gl_kernels *k, gl_prog *p, int threads, const int32_t *tokens, const int32_t *pos,
               const int32_t *slot, const int32_t *outs, const int32_t *pages, const float *embeds, const int32_t *rotary,
               const int32_t *spans, const int32_t *stop, int rows, int nouts);
void gl_barrier(const gl_prog *p); // for operations that divide themselves

// gl_stopped tells a thread that takes tasks that it need not take more. Threads may see it
// at different times, so that barriers must not depend on it.
static inline int gl_stopped(const gl_prog *p) { return p->stop && __atomic_load_n(p->stop, __ATOMIC_RELAXED); }

// Helpers of the kernels.
static inline int gl_count(const gl_prog *p, int set) { return set ? p->nouts : p->rows; }
static inline float *gl_row(const gl_prog *p, const gl_view *v, int64_t r) { return p->arena[v->set] + v->off + r * v->stride; }
// gl_table is the page table of a slot in a group of caches.
static inline const int32_t *gl_table(const gl_prog *p, int group, int slot) {
    return p->pages + ((int64_t)group * p->slots + slot) * p->slot_pages;
}
// gl_kv_bytes is the size of one head of n values.
static inline int64_t gl_kv_bytes(int type, int n) {
    if (type == GL_KV_Q8) return n + (n + GL_KV_BLOCK - 1) / GL_KV_BLOCK * 2;
    return (int64_t)n * (type == GL_KV_F32 ? 4 : 2);
}
static inline int gl_batch_row(const gl_prog *p, const gl_view *v, int r) { return v->set ? p->outs[r] : r; }

#endif
