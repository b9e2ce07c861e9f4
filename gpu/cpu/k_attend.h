// k_attend.h: which thread computes what of attention, and how chunks are joined.
#include "cpu.h"
#include "numerics.h"

// a_oldest is the first position that a row at position pos sees. f[3] is the width of
// the chunks that windows are, 0 for windows that slide.
INLINE int a_oldest(const gl_op *op, int pos) {
    const int window = op->i[5];
    if (op->f[3] > 0) return pos - pos % window;
    return window > 0 && pos >= window ? pos - window + 1 : 0;
}

// a_rounded copies n columns of queries as they meet the keys: rounded to half where
// those are.
static void a_rounded(const int half, const float *q, int n, float *out) {
    for (int i = 0; i < n; i += 8) vputn(out + i, a_round(half, vgetn(q + i, n - i)), n - i);
}

// a_groups cuts n heads into groups of most (4, 2 or 1) with smaller ones at the end;
// group g starts at *h and has *nq heads. It returns the number of groups.
INLINE int a_groups(int n, int most, int g, int *h, int *nq) {
    int count = 0, at = 0;
    for (int size = most; size >= 1; size /= 2)
        while (n - at >= size) {
            if (count == g) *h = at, *nq = size;
            at += size;
            count++;
        }
    return count;
}

// a_total finds the largest score of one head over its chunks and the reciprocal of the
// sum of its exponentials; tail is that of the first chunk.
static void a_total(const float *sink, const float *tail, int64_t step, int chunks, float *max, float *recip) {
    float m = sink ? *sink : -__builtin_inff(), sum = 0;
    for (int c = 0; c < chunks; c++) m = tail[c * step] > m ? tail[c * step] : m;
    for (int c = 0; c < chunks; c++) sum = sum + tail[c * step + 1] * exp1(tail[c * step] - m);
    if (sink && *sink != -__builtin_inff()) sum = sum + exp1(*sink - m);
    *max = m;
    *recip = recip1(sum);
}

// a_job is one attention operation of a run.
typedef struct {
    const gl_prog *p;
    const gl_op *op;
    int tid, rows, heads, kvh, share;
    int gmax, groups; // query heads of a task at most, tasks of a KV head
    int side;         // rows of a task at most: neighbours that see the same positions
    int deep;         // the most chunks of a row when they are tasks of their own, 1 when they are not
    int64_t ps, tail, hs;
} a_job;

// a_sight is the positions [lo, hi) that a row sees, their first chunk and number of chunks.
typedef struct {
    int lo, hi, first, chunks;
} a_sight;

// a_sees is Attention.Sees: what the window leaves, unless the row's span says otherwise.
static a_sight a_sees(const a_job *b, int row) {
    const gl_prog *p = b->p;
    const int r = gl_batch_row(p, &b->op->in[0], row), pos = p->pos[r], span = b->op->i[8];
    a_sight s = {.lo = a_oldest(b->op, pos), .hi = pos + 1};
    if (span > 0 && p->spans) {
        const int32_t *at = p->spans + 2 * ((int64_t)r * p->nspans + span - 1);
        s.lo = at[0] > s.lo ? at[0] : s.lo;
        s.hi = at[1] > s.hi ? at[1] : s.hi;
    }
    s.first = s.lo / GL_CHUNK;
    s.chunks = (s.hi - 1) / GL_CHUNK - s.first + 1;
    return s;
}

// a_work is a row's heads that are computed together, or a head of several rows.
typedef struct {
    a_task t;
    const int32_t *table;
    int row, head, kv;
    int heads, rows; // steps from one query to the next: one of them is 1, the other 0
    a_sight see;
    float *parts;
} a_work;

static const float *a_sink(const a_job *b, int head) { return b->op->vec[0] ? b->op->vec[0] + head : NULL; }
static float *a_shared(const a_job *b, int row, int head) { return b->p->partial + ((int64_t)row * b->heads + head) * b->hs; }

// a_select sets w to the i-th group of heads of the batch, of the first row of its side.
static void a_select(const a_job *b, int64_t i, a_work *w) {
    const gl_prog *p = b->p;
    const gl_op *op = b->op;
    const int kd = op->i[1], vd = op->i[2];
    a_task *t = &w->t;
    int h = 0;
    a_groups(b->share, b->gmax, (int)(i % b->groups), &h, &t->nq);
    w->kv = (int)(i / b->groups % b->kvh), w->row = (int)(i / b->groups / b->kvh) * b->side, w->head = w->kv * b->share + h;
    w->heads = 1, w->rows = 0;
    w->see = a_sees(b, w->row);
    const int row = gl_batch_row(p, &op->in[0], w->row);
    w->table = gl_table(p, op->i[3], p->slot[row]);
    float *scores = p->scratch[b->tid], *q = scores + 4 * GL_CHUNK;
    w->parts = b->deep > 1 ? a_shared(b, w->row, w->head) : q + 4 * kd;
    a_rounded(p->kv_type == GL_KV_F16, gl_row(p, &op->in[0], w->row) + (int64_t)w->head * kd, t->nq * kd, q);
    t->op = op, t->q = q, t->slopes = op->vec[1] ? op->vec[1] + w->head : NULL, t->pos = p->pos[row];
    t->k.bytes = gl_kv_bytes(p->kv_type, kd), t->k.width = kd;
    t->v.bytes = gl_kv_bytes(p->kv_type, vd), t->v.width = vd;
    t->hs = b->hs, t->ps = b->ps, t->tail = b->tail, t->scores = scores;
}

// a_beside adds to a row with one query the next rows, as long as they see the same positions
// of the same sequence: what is loaded once serves all of them. Each query's sums are the
// same as alone. first is the row to begin with.
static void a_beside(const a_job *b, int first, a_work *w) {
    const gl_prog *p = b->p;
    const gl_op *op = b->op;
    const int kd = op->i[1], most = b->rows - first < b->side ? b->rows - first : b->side;
    a_task *t = &w->t;
    float *q = t->scores + 4 * GL_CHUNK;
    const int slot = p->slot[gl_batch_row(p, &op->in[0], first)];
    int n = 1;
    w->row = first, w->see = a_sees(b, first), w->heads = 0, w->rows = 1;
    for (; n < most; n++) {
        const a_sight s = a_sees(b, first + n);
        if (s.lo != w->see.lo || s.hi != w->see.hi || p->slot[gl_batch_row(p, &op->in[0], first + n)] != slot) break;
    }
    t->nq = n >= 4 ? 4 : n >= 2 ? 2 : 1;
    w->table = gl_table(p, op->i[3], slot);
    for (int a = 0; a < t->nq; a++)
        a_rounded(p->kv_type == GL_KV_F16, gl_row(p, &op->in[0], first + a) + (int64_t)w->head * kd, kd, q + a * kd);
    t->pos = p->pos[gl_batch_row(p, &op->in[0], first)];
}

// a_pass makes one pass over chunk c.
static void a_pass(const a_job *b, a_work *w, int pass, int c) {
    const int at = (w->see.first + c) * GL_CHUNK;
    a_task *t = &w->t;
    t->lo = at > w->see.lo ? at : w->see.lo;
    t->hi = at + GL_CHUNK < w->see.hi ? at + GL_CHUNK : w->see.hi;
    if (pass != A_VALUES) a_pages(w->table, b->op->mem[0], b->kvh, w->kv, t->lo, t->hi, &t->k);
    if (pass != A_SCORES) a_pages(w->table, b->op->mem[1], b->kvh, w->kv, t->lo, t->hi, &t->v);
    t->part = w->parts + c * t->ps;
    A_CHUNKS[b->p->kv_type][pass](t);
}

// a_totals is what A_VALUES needs: the scores of all chunks are there.
static void a_totals(const a_job *b, a_work *w) {
    for (int a = 0; a < w->t.nq; a++)
        a_total(a_sink(b, w->head + a * w->heads), w->parts + a * b->hs + b->tail, b->ps, w->see.chunks, &w->t.max[a], &w->t.recip[a]);
}

// a_join adds the value sums of one head's chunks. Fast mode's are averages within their
// chunks.
static void a_join(const a_job *b, int row, int head, const float *parts, int chunks) {
    const int width = b->op->i[2];
    float *out = gl_row(b->p, &b->op->out[0], row) + (int64_t)head * width, m = 0, r = 1;
    memset(out, 0, (size_t)width * 4);
    if (!b->p->exact) a_total(a_sink(b, head), parts + b->tail, b->ps, chunks, &m, &r);
    for (int c = 0; c < chunks; c++) {
        const float *a = parts + c * b->ps;
        const v8f w = vset(b->p->exact ? 1 : a[b->tail + 1] * exp1(a[b->tail] - m));
        for (int d = 0; d < width; d += 8) vputn(out + d, vgetn(out + d, width - d) + vgetn(a + d, width - d) * w, width - d);
    }
    for (int d = 0; d < width; d += 8) vputn(out + d, vgetn(out + d, width - d) * vset(r), width - d);
}

// a_whole computes all chunks of a work.
static void a_whole(const a_job *b, a_work *w) {
    for (int c = 0; c < w->see.chunks; c++) a_pass(b, w, b->p->exact ? A_SCORES : A_ONCE, c);
    if (b->p->exact) {
        a_totals(b, w);
        for (int c = 0; c < w->see.chunks; c++) a_pass(b, w, A_VALUES, c);
    }
    for (int a = 0; a < w->t.nq; a++)
        a_join(b, w->row + a * w->rows, w->head + a * w->heads, w->parts + a * b->hs, w->see.chunks);
}

// a_rows computes whole rows, group of heads by group of heads.
static void a_rows(const a_job *b, int32_t *counter) {
    const int64_t tasks = (int64_t)((b->rows + b->side - 1) / b->side) * b->kvh * b->groups;
    a_work w;
    for (int64_t i; (i = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED)) < tasks && !gl_stopped(b->p);) {
        a_select(b, i, &w);
        if (b->side == 1) {
            a_whole(b, &w);
            continue;
        }
        const int first = w.row, end = first + b->side < b->rows ? first + b->side : b->rows;
        for (int row = first; row < end; row += w.t.nq) {
            a_beside(b, row, &w);
            a_whole(b, &w);
        }
    }
}

// a_split makes one pass in which each chunk is a task of its own. The chunks of a group
// of heads follow each other, so that what they share is found once.
static void a_split(const a_job *b, int pass, int32_t *counter) {
    const int64_t tasks = (int64_t)b->rows * b->kvh * b->groups * b->deep;
    int64_t group = -1;
    a_work w;
    for (int64_t i; (i = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED)) < tasks && !gl_stopped(b->p);) {
        if (i / b->deep != group) {
            a_select(b, group = i / b->deep, &w);
            if (pass == A_VALUES) a_totals(b, &w);
        }
        if (i % b->deep < w.see.chunks) a_pass(b, &w, pass, (int)(i % b->deep));
    }
    gl_barrier(b->p);
}

// a_divide decides how much is a task: chunks where rows are too few for all threads.
static void a_divide(a_job *b) {
    const int threads = b->p->threads;
    int h, nq, deep = 1;
    b->gmax = 4, b->groups = a_groups(b->share, 4, -1, &h, &nq), b->deep = 1, b->side = 1;
    if (b->rows * b->kvh * b->groups >= 4 * threads) {
        // Rows of text see different positions each; those with a span may see the same. A
        // slope tells positions apart.
        if (b->share == 1 && b->op->i[8] > 0 && b->p->spans && !b->op->vec[1]) b->side = 4;
        return;
    }
    for (int r = 0; r < b->rows; r++) {
        const int chunks = a_sees(b, r).chunks;
        deep = chunks > deep ? chunks : deep;
    }
    while (b->gmax > 1 && b->rows * b->kvh * b->groups * deep < threads) {
        b->gmax /= 2;
        b->groups = a_groups(b->share, b->gmax, -1, &h, &nq);
    }
    b->deep = deep;
}

// op_attention: i = {KV heads, key width, value width, group, heads, window, chunks at
// most, floats per partial, span}, f = {scale, softcap, 1/softcap, width of chunks}, vec = {sinks, slopes}.
static void op_attention(const gl_prog *p, const gl_op *op, int tid) {
    a_job b = {.p = p, .op = op, .tid = tid, .rows = gl_count(p, op->in[0].set), .heads = op->i[4], .kvh = op->i[0],
               .share = op->i[4] / op->i[0], .ps = op->i[7], .tail = op->i[7] - 2, .hs = (int64_t)op->i[6] * op->i[7]};
    int32_t *counter = p->counters + 16 * (op - p->ops); // one for each pass
    a_divide(&b);
    if (b.deep == 1) {
        a_rows(&b, counter);
        return;
    }
    if (p->exact) a_split(&b, A_SCORES, counter + A_SCORES);
    a_split(&b, p->exact ? A_VALUES : A_ONCE, counter + (p->exact ? A_VALUES : A_ONCE));
    for (int i = tid; i < b.rows * b.heads; i += p->threads) {
        const int row = i / b.heads, head = i % b.heads;
        a_join(&b, row, head, a_shared(&b, row, head), a_sees(&b, row).chunks);
    }
}
