package ref

import (
	"fmt"
	"sync"

	"ganglion/gpu/ops"
)

// Program is a plan with activation buffers for one shape of batch.
type Program struct {
	rt     *Runtime
	plan   *ops.Plan
	shape  ops.Shape
	layout ops.Layout

	perRow []float32 // arena: buffer b is [shape.Rows, Width] at Offset[b]·shape.Rows
	perOut []float32 // the same with shape.Outs
	ints   [][]int32 // I32 buffers, by buffer

	// The positions that one sequence of the batch looks at, widened to float32:
	// keys [positions, KVHeads·KeyDim] and values [positions, KVHeads·ValueDim].
	keys, values []float32

	heads  []headScratch
	batch  *ops.Batch
	closed bool
}

// Compile allocates the activations of a shape.
func (r *Runtime) Compile(s ops.Shape) (ops.Program, error) {
	if r.closed {
		return nil, fmt.Errorf("ops/ref: compile: %w", ops.ErrClosed)
	}
	if s.Rows <= 0 || s.Rows > r.opts.MaxRows || s.Outs < 0 || s.Outs > s.Rows {
		return nil, fmt.Errorf("ops/ref: compile: %d rows and %d outputs of at most %d rows", s.Rows, s.Outs, r.opts.MaxRows)
	}
	p := &Program{rt: r, plan: r.plan, shape: s, layout: ops.NewLayout(r.plan)}
	p.perRow = make([]float32, p.layout.RowWidth*s.Rows)
	p.perOut = make([]float32, p.layout.OutWidth*s.Outs)
	p.ints = make([][]int32, len(r.plan.Buffers))
	for i, b := range r.plan.Buffers {
		if b.Elem == ops.I32 {
			p.ints[i] = make([]int32, b.Width*p.capacity(b))
		}
	}
	var keys, values int
	for _, c := range r.plan.Caches {
		keys = max(keys, c.Span(r.opts)*c.KVHeads*c.KeyDim)
		values = max(values, c.Span(r.opts)*c.KVHeads*c.ValueDim)
	}
	p.keys, p.values = make([]float32, keys), make([]float32, values)
	p.heads = make([]headScratch, s.Outs)
	r.scratch += p.bytes()
	return p, nil
}

func (p *Program) capacity(b ops.Buffer) int {
	if b.Rows == ops.PerOut {
		return p.shape.Outs
	}
	return p.shape.Rows
}

func (p *Program) bytes() int64 {
	n := len(p.perRow) + len(p.perOut) + len(p.keys) + len(p.values)
	for _, i := range p.ints {
		n += len(i)
	}
	return int64(n) * 4
}

// Close lets the activations go. It may be called twice.
func (p *Program) Close() error {
	if !p.closed && !p.rt.closed {
		p.rt.scratch -= p.bytes()
	}
	*p = Program{rt: p.rt, closed: true}
	return nil
}

// Run executes one batch.
func (p *Program) Run(b *ops.Batch, r *ops.Result) error {
	if p.closed || p.rt.closed {
		return fmt.Errorf("ops/ref: run: %w", ops.ErrClosed)
	}
	if err := b.CheckRun(p.plan, p.rt.opts, p.rt.paging, p.shape); err != nil {
		return err
	}
	p.batch = b
	for i, op := range p.plan.Ops {
		if b.Stop.Stopped() {
			break
		}
		if err := p.do(op); err != nil {
			return fmt.Errorf("ops/ref: %s: operation %d (%s): %w", p.plan.Name, i, op.Name(), err)
		}
	}
	if b.Stop.Stopped() {
		return fmt.Errorf("ops/ref: run: %w", ops.ErrStopped)
	}
	p.readHeads(r)
	return nil
}

// do executes one operation on all rows of the batch.
func (p *Program) do(op ops.Op) error {
	switch o := op.(type) {
	case *ops.Embed:
		return p.embed(o)
	case *ops.Deepstack:
		p.deepstack(o)
	case *ops.Rows:
		p.pickRows(o)
	case *ops.Gather:
		p.gather(o)
	case *ops.MatMul:
		p.matMul(o)
	case *ops.LowRank:
		p.lowRank(o)
	case *ops.RMSNorm:
		p.rmsNorm(o)
	case *ops.LayerNorm:
		p.layerNorm(o)
	case *ops.L2Norm:
		p.l2Norm(o)
	case *ops.Binary:
		p.binary(o)
	case *ops.AddVec:
		p.addVec(o)
	case *ops.Scale:
		p.scale(o)
	case *ops.Unary:
		p.unary(o)
	case *ops.GLU:
		p.glu(o)
	case *ops.Softcap:
		p.softcap(o)
	case *ops.PosScale:
		p.posScale(o)
	case *ops.RoPE:
		p.rope(o)
	case *ops.KVStore:
		p.kvStore(o)
	case *ops.Attention:
		p.attention(o)
	case *ops.Route:
		p.route(o)
	case *ops.ExpertMatMul:
		p.expertMatMul(o)
	case *ops.ExpertSum:
		p.expertSum(o)
	case *ops.ShortConv:
		p.shortConv(o)
	case *ops.Mamba1:
		p.mamba1(o)
	case *ops.Mamba2:
		p.mamba2(o)
	case *ops.GatedDelta:
		p.gatedDelta(o)
	default:
		return ops.ErrUnsupported
	}
	return nil
}

// count is the number of rows a view has in this batch.
func (p *Program) count(v ops.View) int {
	if p.plan.Buffers[v.Buf].Rows == ops.PerOut {
		return len(p.batch.Outs)
	}
	return len(p.batch.Tokens)
}

// batchRow is the row of the batch that row i of a view stands for.
func (p *Program) batchRow(v ops.View, i int) int {
	if p.plan.Buffers[v.Buf].Rows == ops.PerOut {
		return int(p.batch.Outs[i])
	}
	return i
}

// row is row i of a view: [v.Width].
func (p *Program) row(v ops.View, i int) []float32 {
	b := p.plan.Buffers[v.Buf]
	arena := p.perRow
	if b.Rows == ops.PerOut {
		arena = p.perOut
	}
	at := p.layout.Offset[v.Buf]*p.capacity(b) + i*b.Width + v.Off
	return arena[at : at+v.Width : at+v.Width]
}

// ids is row i of an I32 view.
func (p *Program) ids(v ops.View, i int) []int32 {
	at := i*p.plan.Buffers[v.Buf].Width + v.Off
	return p.ints[v.Buf][at : at+v.Width : at+v.Width]
}

// parallel calls f for [0, n) cut into one range per thread. Every result is
// computed whole by one call, so the cut cannot change a bit.
func (p *Program) parallel(n int, f func(from, to int)) {
	threads := min(p.rt.opts.Threads, n)
	if threads <= 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() { f(n*t/threads, n*(t+1)/threads) })
	}
	wg.Wait()
}
