//go:build cgo

package cpu

// #include "cpu.h"
import "C"

import (
	"fmt"
	"unsafe"

	"ganglion/gpu/ops"
)

// compiler turns a plan into the operation list of pool.c for one shape.
//
// Every buffer is a column range of one row-major arena (a row of the arena holds one
// row of all buffers), so threads that take different rows never touch the same
// memory, whatever shares space. Barriers are needed only where an operation reads
// what other threads wrote, or where the division changes.
type compiler struct {
	r      *Runtime
	shape  ops.Shape
	layout ops.Layout
	stride [2]int // floats per row of the arenas

	err       error // the first operation that there is no kernel for
	ops       []C.gl_op
	mats      [][]C.gl_mat // of ops, by index
	chunks    [][]C.gl_chunk
	quantised ops.View // what the quantised activations hold; Width 0: nothing
	quantCols int
	posScales []*ops.PosScale

	last struct { // division of the operation before
		by  C.int32_t
		set C.int32_t
		any bool
	}
}

// wideColumns is the width from which an elementwise operation on few rows is shared
// out by columns: below it a barrier costs more than it saves.
const wideColumns = 16384

func (c *compiler) compile() error {
	for i := 0; i < len(c.r.plan.Ops); i++ {
		if m, ok := c.r.plan.Ops[i].(*ops.MatMul); ok {
			i += c.matMuls(i, m) - 1
			continue
		}
		if l, ok := c.r.plan.Ops[i].(*ops.LowRank); ok {
			c.lowRank(l)
			continue
		}
		c.op(c.r.plan.Ops[i])
		c.wrote(c.r.plan.Ops[i])
	}
	h := C.gl_op{kind: C.GL_OP_HEADS, by: C.GL_BY_TASK}
	h.in[0] = c.view(c.r.plan.Logits)
	c.add(h)
	return c.err
}

// wrote forgets the quantised activations when their source changed.
func (c *compiler) wrote(op ops.Op) {
	for _, v := range op.Writes() {
		if v.Buf == c.quantised.Buf {
			c.quantised = ops.View{}
		}
	}
}

func (c *compiler) set(v ops.View) C.int32_t {
	if c.r.plan.Buffers[v.Buf].Rows == ops.PerOut {
		return 1
	}
	return 0
}

func (c *compiler) view(v ops.View) C.gl_view {
	set := c.set(v)
	return C.gl_view{off: C.int64_t(c.layout.Offset[v.Buf] + v.Off), stride: C.int64_t(c.stride[set]), set: set, width: C.int32_t(v.Width)}
}

// overlaps tells whether two views' buffers share memory.
func (c *compiler) overlaps(a, b ops.View) bool {
	x, y := c.r.plan.Buffers[a.Buf], c.r.plan.Buffers[b.Buf]
	i, j := c.layout.Offset[a.Buf], c.layout.Offset[b.Buf]
	return x.Rows == y.Rows && i < j+y.Width && j < i+x.Width
}

// add appends an operation with the barrier it needs.
func (c *compiler) add(o C.gl_op) {
	set := o.out[0].set
	if o.kind == C.GL_OP_QUANT {
		set = o.in[0].set
	}
	switch {
	case !c.last.any:
		o.sync = C.GL_SYNC_NONE
	case o.by != C.GL_BY_ROW || c.last.by != C.GL_BY_ROW:
		o.sync = C.GL_SYNC_ALWAYS
	case set != c.last.set:
		o.sync = C.GL_SYNC_DIVIDED
	}
	c.last.by, c.last.set, c.last.any = o.by, set, true
	c.ops = append(c.ops, o)
	c.mats = append(c.mats, nil)
	c.chunks = append(c.chunks, nil)
}

// columns divides wide elementwise operations on outputs by columns.
func (c *compiler) columns(v ops.View) C.int32_t {
	if v.Width >= wideColumns && c.set(v) == 1 {
		return C.GL_BY_COL
	}
	return C.GL_BY_ROW
}

// act is the function of an activation: exact mode has a GELU of its own.
func (c *compiler) act(a ops.Act) C.int32_t {
	if a == ops.GELU && c.r.opts.Numerics == ops.Exact {
		return C.ACT_GELUHALF
	}
	return C.int32_t(a)
}

func (c *compiler) vector(w *ops.Weight) (*C.float, int) {
	v := c.r.vectors[w]
	if w == nil || len(v) == 0 {
		return nil, 0
	}
	return (*C.float)(&v[0]), len(v)
}

func flag(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

// op appends any operation but a matrix product.
func (c *compiler) op(op ops.Op) {
	var o C.gl_op
	views := func(ins []ops.View, outs ...ops.View) {
		for i, v := range ins {
			o.in[i] = c.view(v)
		}
		for i, v := range outs {
			o.out[i] = c.view(v)
		}
	}
	in := func(v ...ops.View) []ops.View { return v }
	norm := func(kind C.int32_t, group int, eps float32, x, y ops.View) {
		if group <= 0 {
			group = x.Width
		}
		o.kind = kind
		o.i[0] = C.int32_t(group)
		o.f[0], o.f[1] = C.float(eps), C.float(1/float32(group))
		views(in(x), y)
	}
	switch v := op.(type) {
	case *ops.Embed:
		o.kind, o.w = C.GL_OP_EMBED, c.r.weights[v.Table]
		o.i[0], o.f[0] = flag(v.ByPosition), C.float(v.Scale)
		views(nil, v.Out)
	case *ops.Deepstack:
		o.kind, o.i[0] = C.GL_OP_DEEPSTACK, C.int32_t(v.Slice)
		views(in(v.In), v.Out)
	case *ops.Rows:
		o.kind = C.GL_OP_ROWS
		views(in(v.In), v.Out)
	case *ops.RMSNorm:
		norm(C.GL_OP_RMSNORM, v.Group, v.Eps, v.In, v.Out)
		c.weigh(&o, 0, v.W)
	case *ops.LayerNorm:
		norm(C.GL_OP_LAYERNORM, v.Group, v.Eps, v.In, v.Out)
		c.weigh(&o, 0, v.W)
		c.weigh(&o, 1, v.Bias)
	case *ops.L2Norm:
		norm(C.GL_OP_L2NORM, v.Group, v.Eps, v.In, v.Out)
	case *ops.Binary:
		o.kind, o.by, o.i[0] = C.GL_OP_BINARY, c.columns(v.Out), flag(v.Kind == ops.MulKind)
		views(in(v.A, v.B), v.Out)
	case *ops.AddVec:
		o.kind, o.by, o.i[0] = C.GL_OP_ADDVEC, c.columns(v.Out), flag(v.Mul)
		c.weigh(&o, 0, v.W)
		views(in(v.In), v.Out)
	case *ops.Scale:
		o.kind, o.by = C.GL_OP_SCALE, c.columns(v.Out)
		o.f = [4]C.float{C.float(v.Factor), C.float(v.Offset), C.float(v.Clamp)}
		views(in(v.In), v.Out)
	case *ops.Unary:
		o.kind, o.by, o.i[0] = C.GL_OP_UNARY, c.columns(v.Out), c.act(v.Act)
		views(in(v.In), v.Out)
	case *ops.GLU:
		o = c.glu(v)
	case *ops.Softcap:
		o.kind, o.by = C.GL_OP_SOFTCAP, c.columns(v.Out)
		o.f[0], o.f[1] = C.float(v.Cap), C.float(1/v.Cap)
		views(in(v.In), v.Out)
	case *ops.PosScale:
		o.kind, o.i[0], o.i[1] = C.GL_OP_POSSCALE, C.int32_t(len(c.posScales)), C.int32_t(c.shape.Rows)
		c.posScales = append(c.posScales, v)
		views(in(v.In), v.Out)
	case *ops.RoPE:
		t := &c.r.tables[v.Table]
		o.kind = C.GL_OP_ROPE
		o.i = [9]C.int32_t{C.int32_t(v.HeadDim), C.int32_t(v.Start), C.int32_t(t.half), flag(v.NeoX)}
		o.mem[0] = t.axes.p
		o.vec[0] = (*C.float)(t.b.p)
		o.vec[1] = (*C.float)(unsafe.Add(t.b.p, 4*t.half*c.r.opts.Context))
		views(in(v.In), v.Out)
	case *ops.KVStore:
		k := c.r.plan.Caches[v.Cache]
		o.kind = C.GL_OP_KVSTORE
		o.i = [9]C.int32_t{C.int32_t(k.KVHeads), C.int32_t(k.KeyDim), C.int32_t(k.ValueDim), C.int32_t(c.r.paging.Of[v.Cache])}
		o.mem = [2]unsafe.Pointer{c.r.caches[v.Cache].keys.p, c.r.caches[v.Cache].values.p}
		views(in(v.K, v.V))
	case *ops.Attention:
		o = c.attention(v)
	case *ops.Gather:
		o = c.gather(v)
	default:
		o = c.rare(op)
	}
	if c.needsQuant(op) {
		c.quantise(op.(*ops.ExpertMatMul).In)
	}
	c.add(o)
}

// weigh sets vector i of a norm or AddVec and its length, i[1+i].
func (c *compiler) weigh(o *C.gl_op, i int, w *ops.Weight) {
	v, n := c.vector(w)
	o.vec[i], o.i[1+i] = v, C.int32_t(n)
}

func (c *compiler) glu(v *ops.GLU) C.gl_op {
	o := C.gl_op{kind: C.GL_OP_GLU, by: c.columns(v.Out)}
	o.i[0] = c.act(v.Act)
	o.f = [4]C.float{C.float(v.Limit), C.float(v.Alpha), C.float(v.UpOffset)}
	o.in[0], o.in[1], o.out[0] = c.view(v.Gate), c.view(v.Up), c.view(v.Out)
	return o
}

func (c *compiler) attention(v *ops.Attention) C.gl_op {
	k := c.r.plan.Caches[v.Cache]
	o := C.gl_op{kind: C.GL_OP_ATTENTION, by: C.GL_BY_TASK}
	o.i = [9]C.int32_t{C.int32_t(k.KVHeads), C.int32_t(k.KeyDim), C.int32_t(k.ValueDim), C.int32_t(c.r.paging.Of[v.Cache]),
		C.int32_t(v.Heads), C.int32_t(v.Window), C.int32_t(v.Chunks(c.r.opts)), C.int32_t(ops.PartialFloats(k.ValueDim, c.r.opts.Numerics)),
		C.int32_t(v.Span)}
	o.f[0], o.f[1] = C.float(v.Scale), C.float(v.Softcap)
	if v.Softcap > 0 {
		o.f[2] = C.float(1 / v.Softcap)
	}
	if v.Chunked {
		o.f[3] = C.float(v.Window)
	}
	o.mem = [2]unsafe.Pointer{c.r.caches[v.Cache].keys.p, c.r.caches[v.Cache].values.p}
	o.vec[0], _ = c.vector(v.Sinks)
	if s := ops.ALiBiSlopes(v.Heads, v.ALiBi); s != nil {
		c.r.pinner.Pin(&s[0]) // kept in C memory until the runtime is closed
		o.vec[1] = (*C.float)(&s[0])
	}
	o.in[0], o.out[0] = c.view(v.Q), c.view(v.Out)
	return o
}

// rare are mixture of experts and recurrent operations.
func (c *compiler) rare(op ops.Op) C.gl_op {
	o := C.gl_op{by: C.GL_BY_TASK}
	state := func(i int) {
		o.mem[0], o.i[7] = c.r.states[i].p, C.int32_t(c.r.plan.States[i].Floats)
	}
	vectors := func(ws ...*ops.Weight) {
		for i, w := range ws {
			o.vec[i], _ = c.vector(w)
		}
	}
	switch v := op.(type) {
	case *ops.Route:
		o.kind, o.by = C.GL_OP_ROUTE, C.GL_SERIAL
		o.i = [9]C.int32_t{C.int32_t(v.Kind), C.int32_t(v.TopK), C.int32_t(v.Groups), C.int32_t(v.GroupsUsed), flag(v.Norm),
			C.int32_t(max(v.Share, 1))}
		o.f[0] = C.float(v.Scale)
		vectors(v.Bias)
	case *ops.ExpertMatMul:
		w := c.r.weights[v.W]
		o.kind, o.w = C.GL_OP_EXPERTMATMUL, w
		o.i[0], o.i[1] = C.int32_t(v.IDs.Width), C.int32_t(chunkTiles(w, 1, c.r.opts.Threads))
		o.in[0], o.in[1], o.out[0] = c.view(v.In), c.view(v.IDs), c.view(v.Out)
		vectors(v.Bias)
		return o
	case *ops.ExpertSum:
		o.kind, o.by, o.i[0] = C.GL_OP_EXPERTSUM, C.GL_BY_ROW, C.int32_t(v.IDs.Width)
		o.in[0], o.in[1], o.in[2], o.out[0] = c.view(v.In), c.view(v.IDs), c.view(v.Weights), c.view(v.Out)
		vectors(v.PerExpert)
		return o
	case *ops.ShortConv:
		o.kind, o.i[0], o.i[1] = C.GL_OP_SHORTCONV, C.int32_t(v.W.Cols), c.act(v.Act)
		vectors(v.W, v.Bias)
		state(v.State)
	case *ops.Mamba1:
		o.kind, o.i[0] = C.GL_OP_MAMBA1, C.int32_t(v.N)
		vectors(v.A, v.D)
		state(v.State)
	case *ops.Mamba2:
		o.kind = C.GL_OP_MAMBA2
		o.i = [9]C.int32_t{C.int32_t(v.N), C.int32_t(v.Heads), C.int32_t(v.Groups)}
		vectors(v.A, v.D)
		state(v.State)
	case *ops.GatedDelta:
		o.kind = C.GL_OP_GATEDDELTA
		o.i = [9]C.int32_t{C.int32_t(v.KHeads), C.int32_t(v.VHeads), C.int32_t(v.Dim)}
		o.f[0] = C.float(v.Scale)
		state(v.State)
	default:
		if c.err == nil {
			c.err = fmt.Errorf("%s: operation %s: %w", c.r.plan.Name, op.Name(), ops.ErrUnsupported)
		}
	}
	for i, x := range op.Reads() {
		o.in[i] = c.view(x)
	}
	for i, x := range op.Writes() {
		o.out[i] = c.view(x)
	}
	return o
}

func (c *compiler) needsQuant(op ops.Op) bool {
	e, ok := op.(*ops.ExpertMatMul)
	return ok && c.r.weights[e.W].layout >= C.GL_Q8
}

// quantise makes the quantised activations hold v.
func (c *compiler) quantise(v ops.View) {
	if c.quantised == v {
		return
	}
	c.quantised = v
	c.quantCols = max(c.quantCols, v.Width)
	o := C.gl_op{kind: C.GL_OP_QUANT, by: C.GL_BY_ROW}
	o.in[0] = c.view(v)
	c.add(o)
}
