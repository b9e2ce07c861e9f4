//go:build cgo

package cpu

// #include "cpu.h"
import "C"

import "ganglion/gpu/ops"

// matMuls appends the matrix products from operation i on that read the same input as
// one operation (q, k and v; gate and up), with the GLU behind gate and up. Updates of
// adapters between them are done after the group: they read the same input, which lives
// to the group's end, and the outputs of the group share no memory. It returns how many
// operations of the plan it took.
func (c *compiler) matMuls(i int, first *ops.MatMul) int {
	group := []*ops.MatMul{first}
	var updates []*ops.LowRank
	all := c.r.plan.Ops
	for _, op := range all[i+1:] {
		if l, ok := op.(*ops.LowRank); ok && !l.ByToken && l.IDs.Width == 0 && l.In == first.In {
			updates = append(updates, l)
			continue
		}
		m, ok := op.(*ops.MatMul)
		if !ok || m.In != first.In || c.clash(group, m) {
			break
		}
		group = append(group, m)
	}
	n := len(group)
	packed := 0
	for _, m := range group {
		if c.r.weights[m.W].layout >= C.GL_Q8 {
			packed++
		}
	}
	if packed > 0 {
		c.quantise(first.In)
	}
	var glu *ops.GLU
	if i+n < len(all) && n == 2 && len(updates) == 0 {
		if g, ok := all[i+n].(*ops.GLU); ok && g.Gate == group[0].Out && g.Up == group[1].Out && g.Gate.Width == g.Up.Width &&
			(packed == n || !c.overlaps(g.Out, first.In)) {
			glu = g
		}
	}
	c.addGroup(group, glu)
	for _, m := range group {
		c.wrote(m)
	}
	for _, l := range updates {
		c.lowRank(l)
	}
	n += len(updates)
	if glu != nil {
		c.wrote(glu)
		return n + 1
	}
	return n
}

// clash tells whether m's output shares memory with an output of the group: the plan's
// layout lets a dead output be overwritten by the next operation.
func (c *compiler) clash(group []*ops.MatMul, m *ops.MatMul) bool {
	for _, g := range group {
		if g.Out.Buf != m.Out.Buf && c.overlaps(g.Out, m.Out) {
			return true
		}
	}
	return false
}

func (c *compiler) addGroup(group []*ops.MatMul, glu *ops.GLU) {
	o := C.gl_op{kind: C.GL_OP_MATMUL, by: C.GL_BY_TASK}
	o.in[0], o.out[0] = c.view(group[0].In), c.view(group[0].Out)
	mats := make([]C.gl_mat, len(group))
	for i, m := range group {
		bias, _ := c.vector(m.Bias)
		mats[i] = C.gl_mat{w: c.r.weights[m.W], bias: bias, out: c.view(m.Out)}
	}
	var chunks []C.gl_chunk
	for i := range mats {
		if glu != nil && i == 1 {
			break // chunks of gate and up are the same
		}
		w := mats[i].w
		step := chunkTiles(w, len(mats), c.r.opts.Threads)
		for t := 0; t < int(w.tiles); t += step {
			chunks = append(chunks, C.gl_chunk{mat: C.int32_t(i), t0: C.int32_t(t), t1: C.int32_t(min(t+step, int(w.tiles)))})
		}
	}
	if glu != nil {
		o.i[0] = 1
		o.out[0] = c.view(glu.Out)
	}
	c.add(o)
	c.mats[len(c.mats)-1], c.chunks[len(c.chunks)-1] = mats, chunks
	if glu != nil {
		// The parameters of the GLU stand in the next operation, which does nothing.
		g := c.glu(glu)
		g.kind, g.by = C.GL_OP_NONE, C.GL_BY_TASK
		c.add(g)
		c.ops[len(c.ops)-1].sync = C.GL_SYNC_NONE
	}
}

// A chunk of tiles is the unit that threads take: small enough to even out threads of
// different speed and to stay in the L2 cache while all rows of a batch pass it,
// large enough for a stream.
const (
	chunkBytes     = 96 << 10
	chunksOfThread = 8
)

// chunkTiles is the number of tiles in a chunk of one of mats matrices.
func chunkTiles(w *C.gl_weight, mats, threads int) int {
	bytes := int(w.tile_bytes)
	if bytes == 0 {
		bytes = int(w.row_bytes) * tileRows
	}
	n := int(w.tiles) * mats / (threads * chunksOfThread)
	return min(max(1, n), max(1, chunkBytes/bytes))
}
