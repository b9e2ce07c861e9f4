// k_gather.h: units of other rows put together (ops.Gather).
#include "cpu.h"
#include "numerics.h"

// op_gather: i = {unit, terms, mean, first entry of the list}, f = {1/terms}. The rows of
// the output are shared out; a barrier stands before and behind it, for it reads rows of
// other threads.
static void op_gather(const gl_prog *p, const gl_op *op, int tid) {
    const int unit = op->i[0], terms = op->i[1], mean = op->i[2];
    const int units = op->in[0].width / unit, n = op->out[0].width / unit;
    int r0, r1;
    r_rows(p, gl_count(p, op->out[0].set), tid, &r0, &r1);
    const int32_t *list = p->lists + op->i[3] + (int64_t)r0 * n * terms;
    for (int r = r0; r < r1; r++)
        for (int u = 0; u < n; u++, list += terms) {
            float *y = gl_row(p, &op->out[0], r) + u * unit;
            if (terms == 1 && list[0] >= 0) {
                memcpy(y, gl_row(p, &op->in[0], list[0] / units) + list[0] % units * unit, (size_t)unit * 4);
                continue;
            }
            memset(y, 0, (size_t)unit * 4);
            for (int t = 0; t < terms; t++) {
                if (list[t] < 0) continue;
                const float *x = gl_row(p, &op->in[0], list[t] / units) + list[t] % units * unit;
                for (int i = 0; i < unit; i += 8) vputn(y + i, vgetn(y + i, unit - i) + vgetn(x + i, unit - i), unit - i);
            }
            if (mean)
                for (int i = 0; i < unit; i += 8) vputn(y + i, vgetn(y + i, unit - i) * vset(op->f[0]), unit - i);
        }
}
