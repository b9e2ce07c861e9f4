package opstest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// broken is ref with one mistake. Each field, where set, makes one.
type broken struct {
	*ref.Backend
	op     func(op ops.Op, p *ops.Plan) ops.Op // changes operations; nil drops none
	extra  func(op ops.Op, p *ops.Plan) ops.Op // adds an operation after one
	plan   func(p *ops.Plan)                   // changes a copy of the plan
	opts   func(o *ops.Options)
	load   func(ctx context.Context, progress *func(done, total int64)) context.Context
	memory func(m *ops.Memory)
	run    func(o ops.Options, b *ops.Batch, r *ops.Result, err error) error
	refuse string             // operation that Compile does not know
	sticky bool               // LoadState does nothing
	open   bool               // closing a runtime does nothing
	stale  bool               // position 0 does not reset recurrent state
	before func(b *ops.Batch) // changes a copy of the batch
	copies bool               // CopyPage does nothing
	carry  func(page []byte)  // changes pages that are written
}

func (b *broken) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	if b.load != nil {
		ctx = b.load(ctx, &progress)
	}
	asked := o
	if b.opts != nil {
		b.opts(&o)
	}
	changed := *p
	changed.Caches = append([]ops.Cache(nil), p.Caches...)
	changed.Weights = append([]*ops.Weight(nil), p.Weights...)
	changed.Ops = nil
	for _, op := range p.Ops {
		if b.op != nil {
			op = b.op(op, p)
		}
		changed.Ops = append(changed.Ops, op)
		if b.extra != nil {
			if e := b.extra(op, p); e != nil {
				changed.Ops = append(changed.Ops, e)
			}
		}
	}
	if b.plan != nil {
		b.plan(&changed)
	}
	rt, err := b.Backend.Load(ctx, &changed, o, progress)
	if err != nil {
		return nil, err
	}
	return &brokenRuntime{rt, b, p, asked}, nil
}

type brokenRuntime struct {
	ops.Runtime
	b    *broken
	plan *ops.Plan
	opts ops.Options
}

func (r *brokenRuntime) Compile(s ops.Shape) (ops.Program, error) {
	for _, op := range r.plan.Ops {
		if op.Name() == r.b.refuse {
			return nil, ops.ErrUnsupported
		}
	}
	p, err := r.Runtime.Compile(s)
	if err != nil {
		return nil, err
	}
	return &brokenProgram{p, r}, nil
}

func (r *brokenRuntime) Memory() ops.Memory {
	m := r.Runtime.Memory()
	if r.b.memory != nil {
		r.b.memory(&m)
	}
	return m
}

func (r *brokenRuntime) LoadState(slot int, state []float32) error {
	if r.b.sticky {
		return nil
	}
	return r.Runtime.LoadState(slot, state)
}

func (r *brokenRuntime) CopyPage(group, dst, src int) error {
	if r.b.copies {
		return nil
	}
	return r.Runtime.CopyPage(group, dst, src)
}

func (r *brokenRuntime) ReadPage(group, page int, into []byte) ([]byte, error) {
	return r.Runtime.(ops.Carrier).ReadPage(group, page, into)
}

func (r *brokenRuntime) WritePage(group, page int, data []byte) error {
	if r.b.carry != nil {
		data = append([]byte(nil), data...)
		r.b.carry(data)
	}
	return r.Runtime.(ops.Carrier).WritePage(group, page, data)
}

func (r *brokenRuntime) Close() error {
	if r.b.open {
		return nil
	}
	return r.Runtime.Close()
}

type brokenProgram struct {
	ops.Program
	rt *brokenRuntime
}

func (p *brokenProgram) Run(b *ops.Batch, r *ops.Result) error {
	if p.rt.b.before != nil {
		changed := *b
		changed.Pages = append([]int32(nil), b.Pages...)
		p.rt.b.before(&changed)
		b = &changed
	}
	if p.rt.b.stale && b.Pos[0] == 0 && len(b.Pos) > 1 {
		return p.runStale(b, r)
	}
	err := p.Program.Run(b, r)
	if p.rt.b.run != nil {
		return p.rt.b.run(p.rt.opts, b, r, err)
	}
	return err
}

// runStale runs the first row, puts the old state back and runs the others.
func (p *brokenProgram) runStale(b *ops.Batch, r *ops.Result) error {
	old, err := p.rt.SaveState(int(b.Slot[0]), nil)
	if err != nil {
		return err
	}
	cut := func(from, to int) ([][]float32, error) {
		part := ops.Batch{Tokens: b.Tokens[from:to], Pos: b.Pos[from:to], Slot: b.Slot[from:to], Want: b.Want[from:to], Pages: b.Pages}
		for i := range to - from {
			part.Outs = append(part.Outs, int32(i))
		}
		return runRows(p.Program, &part)
	}
	first, err := cut(0, 1)
	if err != nil {
		return err
	}
	if err := p.rt.LoadState(int(b.Slot[0]), old); err != nil {
		return err
	}
	rest, err := cut(1, len(b.Pos))
	r.Heads = nil
	for _, row := range append(first, rest...) {
		r.Heads = append(r.Heads, ops.Head{Row: row})
	}
	return err
}

// change makes a change of one kind of operation.
func change[T any](f func(op *T)) func(ops.Op, *ops.Plan) ops.Op {
	return func(op ops.Op, _ *ops.Plan) ops.Op {
		if o, ok := any(op).(*T); ok {
			copied := *o
			f(&copied)
			return any(&copied).(ops.Op)
		}
		return op
	}
}

// nudge moves the first value of every row that was read back by one step.
func nudge(r *ops.Result) {
	for _, h := range r.Heads {
		if len(h.Row) > 0 {
			h.Row[0] = math.Nextafter32(h.Row[0], 100)
		}
	}
}

// TestFindsMistakes shows for each promise that the check which holds it can fail.
func TestFindsMistakes(t *testing.T) {
	tests := map[string]struct {
		b     broken
		check string // prefix of the names of checks of which one must fail
		says  string
	}{
		"one step off": {broken{run: func(_ ops.Options, _ *ops.Batch, r *ops.Result, err error) error {
			nudge(r)
			return err
		}}, "binary/0/67", "differs from ref"},
		"off by a percent in fast mode": {broken{run: func(o ops.Options, _ *ops.Batch, r *ops.Result, err error) error {
			for _, h := range r.Heads {
				for i := range h.Row {
					h.Row[i] *= 1.01
				}
			}
			return err
		}}, "scale/", "fast, kv f16, apart"},
		"depends on the size of the batch": {broken{run: func(o ops.Options, b *ops.Batch, r *ops.Result, err error) error {
			if o.Numerics == ops.Fast && len(b.Tokens) == 1 {
				nudge(r)
			}
			return err
		}}, "matmul/Q8_0", "fast, kv f16, guarded, one by one"},
		"depends on the number of threads": {broken{run: func(o ops.Options, _ *ops.Batch, r *ops.Result, err error) error {
			if o.Threads > 1 {
				nudge(r)
			}
			return err
		}}, "model/results", "differs from whole"},
		"ignores the window": {broken{op: change(func(o *ops.Attention) { o.Window = 0 }), plan: func(p *ops.Plan) {
			for i := range p.Caches {
				p.Caches[i].Window = 0
			}
		}}, "attention/2of4/k64v64/window5of5", "values are wrong"},
		"window one too wide": {broken{op: change(func(o *ops.Attention) {
			if o.Window > 0 {
				o.Window++
			}
		}), plan: func(p *ops.Plan) {
			for i := range p.Caches {
				if p.Caches[i].Window > 0 {
					p.Caches[i].Window++
				}
			}
		}}, "attention/1of2/k64v64/window1of1", "values are wrong"},
		"chunks that slide":    {broken{op: change(func(o *ops.Attention) { o.Chunked = false })}, "attention/1of2/k64v64/window8of8/chunked", "values are wrong"},
		"no softcap on scores": {broken{op: change(func(o *ops.Attention) { o.Softcap = 0 })}, "attention/2of4/k64v64/window0of0/softcap", "values are wrong"},
		"no sinks":             {broken{op: change(func(o *ops.Attention) { o.Sinks = nil })}, "attention/2of4/k8v8/window7of7/sinks", "values are wrong"},
		"wrong slopes":         {broken{op: change(func(o *ops.Attention) { o.ALiBi *= 1.1 })}, "attention/2of6/k64v64/window0of0/alibi", "values are wrong"},
		"other type of cache":  {broken{opts: func(o *ops.Options) { o.KV = ops.KVF32 }}, "attention/4of4", "exact, kv f16"},
		"reads a neighbour": {broken{op: func(op ops.Op, p *ops.Plan) ops.Op {
			if o, ok := op.(*ops.RMSNorm); ok && o.In.Off+o.In.Width < p.Buffers[o.In.Buf].Width {
				copied := *o
				copied.In.Off++
				return &copied
			}
			return op
		}}, "rmsnorm/67", "differs from apart"},
		"writes a neighbour": {broken{extra: func(op ops.Op, p *ops.Plan) ops.Op {
			if o, ok := op.(*ops.MatMul); ok && o.Out.Off+o.Out.Width < p.Buffers[o.Out.Buf].Width {
				next := ops.View{Buf: o.Out.Buf, Off: o.Out.Off + o.Out.Width, Width: 1}
				return &ops.Scale{Factor: 0, In: next, Out: next}
			}
			return nil
		}}, "matmul/F32", "outside the output"},
		"pairs for halves": {broken{op: change(func(o *ops.RoPE) { o.NeoX = !o.NeoX })}, "rope/plain", "values are wrong"},
		"other activation": {broken{op: change(func(o *ops.Unary) {
			if o.Act == ops.GELUErf {
				o.Act = ops.GELU
			}
		})}, "unary/3", "exact"},
		"GELU of full floats": {broken{run: func(o ops.Options, b *ops.Batch, r *ops.Result, err error) error {
			for i, h := range r.Heads { // the first layout has the argument alone in its row
				for j := range h.Row {
					if o.Numerics == ops.Exact && len(b.Embeds) == len(r.Heads)*len(h.Row) {
						x := float64(b.Embeds[i*len(h.Row)+j])
						h.Row[j] = float32(x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))))
					}
				}
			}
			return err
		}}, "unary/2/256", "values are wrong"},
		"no normalisation": {broken{op: change(func(o *ops.Route) { o.Norm = false })}, "moe/softmax,norm", "values are wrong"},
		"bias counts":      {broken{op: change(func(o *ops.Route) { o.Bias = nil })}, "moe/sigmoid,bias", "values are wrong"},
		"sigmoid at once": {broken{op: change(func(o *ops.Route) {
			if o.Kind == ops.RouteRawSigmoid {
				o.Kind = ops.RouteSigmoid
			}
		})}, "moe/rawsigmoid", "values are wrong"},
		"first of a share": {broken{op: change(func(o *ops.Route) {
			if o.Share > 1 {
				o.Share = 4
			}
		})}, "moe/shares", "values are wrong"},
		"no groups": {broken{op: change(func(o *ops.Route) { o.Groups = 0 })}, "moe/sigmoid,groups", "values are wrong"},
		"one bit of a weight": {broken{plan: func(p *ops.Plan) {
			for i, w := range p.Weights {
				copied := *w
				copied.Data = append([]byte(nil), w.Data...)
				copied.Data[len(w.Data)/2] ^= 8
				p.Weights[i] = &copied
				for j, op := range p.Ops {
					if m, ok := op.(*ops.MatMul); ok && m.W == w {
						p.Ops[j] = &ops.MatMul{W: &copied, Bias: m.Bias, In: m.In, Out: m.Out}
					}
					if m, ok := op.(*ops.Embed); ok && m.Table == w {
						p.Ops[j] = &ops.Embed{Table: &copied, Scale: m.Scale, Out: m.Out}
					}
				}
			}
		}}, "matmul/Q6_K", ""},
		"no NaN guard": {broken{run: func(_ ops.Options, b *ops.Batch, r *ops.Result, _ error) error {
			r.Heads = make([]ops.Head, len(b.Outs))
			return nil
		}}, "heads/nan-guard", "gave error <nil>"},
		"one bad row fails all": {broken{run: func(_ ops.Options, _ *ops.Batch, r *ops.Result, err error) error {
			for _, h := range r.Heads {
				err = errors.Join(err, h.Err)
			}
			return err
		}}, "heads/nan-guard", "failed the batch"},
		"another page": {broken{before: func(b *ops.Batch) {
			for i := range b.Pages {
				b.Pages[i] &^= 1 // pages 2n and 2n+1 become one
			}
		}}, "model/results", ""},
		"copies no page": {broken{copies: true}, "runtime/copy-page", "got"},
		"carries a byte wrongly": {broken{carry: func(page []byte) {
			if len(page) > 1 {
				page[len(page)/2] ^= 1
			}
		}}, "runtime/carry", "is not what was written"},
		"carries no state": {broken{sticky: true}, "runtime/carry", "got"},
		"best of equals": {broken{run: func(_ ops.Options, _ *ops.Batch, r *ops.Result, err error) error {
			for _, h := range r.Heads {
				if n := len(h.IDs); n > 1 {
					h.IDs[0], h.IDs[1] = h.IDs[1], h.IDs[0]
				}
			}
			return err
		}}, "heads/256/ties=true", "best 40"},
		"other log-sum-exp": {broken{run: func(_ ops.Options, _ *ops.Batch, r *ops.Result, err error) error {
			for i := range r.Heads {
				r.Heads[i].LogSumExp += 1e-4
			}
			return err
		}}, "heads/5000", "log-sum-exp"},
		"other statistics": {broken{run: func(_ ops.Options, _ *ops.Batch, r *ops.Result, err error) error {
			for i := range r.Heads {
				if s := &r.Heads[i].Stats; s.Finite > 0 {
					s.Std = math.Nextafter32(s.Std, 0)
				}
			}
			return err
		}}, "heads/5000", "statistics"},
		"statistics of no use": {broken{run: func(_ ops.Options, _ *ops.Batch, r *ops.Result, err error) error {
			for i := range r.Heads {
				if s := &r.Heads[i].Stats; s.Finite > 0 {
					s.Entropy *= 1.001
				}
			}
			return err
		}}, "heads/5000", "entropy"},
		"keeps abandoned state":     {broken{sticky: true}, "runtime/state", "what was loaded"},
		"keeps state at position 0": {broken{stale: true}, "model/positions-restart", "got"},
		"notices a neighbour": {broken{run: func(_ ops.Options, b *ops.Batch, r *ops.Result, err error) error {
			if b.Embeds != nil {
				nudge(r)
			}
			return err
		}}, "model/bad-neighbour", "sequence 0"},
		"other rows for outputs": {broken{op: func(op ops.Op, p *ops.Plan) ops.Op {
			if o, ok := op.(*ops.PosScale); ok && p.Buffers[o.In.Buf].Rows == ops.PerOut {
				return &ops.PosScale{Floor: o.Floor, Scale: 2 * o.Scale, In: o.In, Out: o.Out}
			}
			return op
		}}, "attention/per-output", "output rows differ"},
		"rolls no state back": {broken{sticky: true}, "model/rollback", "got"},
		"hides memory":        {broken{memory: func(m *ops.Memory) { m.KV-- }}, "runtime/memory", "DeviceKVBytes"},
		"works after closing": {broken{open: true}, "runtime/closed", "on a closed runtime"},
		"runs on when cancelled": {broken{load: func(ctx context.Context, _ *func(done, total int64)) context.Context {
			return context.WithoutCancel(ctx)
		}}, "runtime/load", "cancelled"},
		"reports no progress": {broken{load: func(ctx context.Context, p *func(done, total int64)) context.Context { *p = nil; return ctx }}, "runtime/load", "progress"},
		"cannot be stopped":   {broken{before: func(b *ops.Batch) { b.Stop = nil }}, "runtime/stop", "that was stopped gave <nil>"},
		"other bits where it may stop": {broken{run: func(_ ops.Options, b *ops.Batch, r *ops.Result, err error) error {
			if b.Stop != nil {
				nudge(r)
			}
			return err
		}}, "runtime/stop", "may be stopped"},
		"swallows bad batches":       {broken{run: func(ops.Options, *ops.Batch, *ops.Result, error) error { return nil }}, "runtime/bad-batches", ""},
		"does not know the scan":     {broken{refuse: "mamba1"}, "mamba1/", "unsupported"},
		"other token":                {broken{op: change(func(o *ops.Embed) { o.ByPosition = !o.ByPosition })}, "embed/F16/token", ""},
		"no scale of embeddings":     {broken{op: change(func(o *ops.Embed) { o.Scale = 1 })}, "embed/Q4_0", "values are wrong"},
		"no bias of a norm":          {broken{op: change(func(o *ops.LayerNorm) { o.Bias = nil })}, "layernorm/67", "values are wrong"},
		"decays another way":         {broken{op: change(func(o *ops.GatedDelta) { o.Gate, o.Beta = o.Beta, o.Gate })}, "gateddelta/2of4", "values are wrong"},
		"reads other groups":         {broken{op: change(func(o *ops.Mamba2) { o.B, o.C = o.C, o.B })}, "mamba2/2of4", "values are wrong"},
		"no bias of the convolution": {broken{op: change(func(o *ops.ShortConv) { o.Bias = nil })}, "shortconv/37x4/act1/bias=true", "values are wrong"},
		"other strength":             {broken{op: change(func(o *ops.LowRank) { o.Factor *= 1.01 })}, "lowrank/F32/33x67", "values are wrong"},
		"other adapter":              {broken{op: change(func(o *ops.LowRank) { o.Adapter = 0 })}, "lowrank/F16/300x96", "values are wrong"},
		"other strength by token":    {broken{op: change(func(o *ops.LowRank) { o.Factor *= 1.01 })}, "lowrank/token", "values are wrong"},
		"other matrix of the stack":  {broken{op: change(func(o *ops.LowRank) { o.IDs = ops.View{}; o.Out.Width = o.B.Rows })}, "lowrank/F32/21x35", "values are wrong"},
		"adds nothing to other rows": {broken{extra: func(op ops.Op, _ *ops.Plan) ops.Op {
			if o, ok := op.(*ops.LowRank); ok {
				return &ops.Scale{Factor: 1, In: o.Out, Out: o.Out} // −0 becomes +0
			}
			return nil
		}}, "lowrank/untouched", "and changed"},
		"heeds no span":      {broken{op: change(func(o *ops.Attention) { o.Span = 0 })}, "attention/2of4/k64v64/window0of0/picture", "values are wrong"},
		"heeds another span": {broken{op: change(func(o *ops.Attention) { o.Span = min(o.Span, 1) })}, "attention/4of4/k72v72/window0of0/tower", "values are wrong"},
		"clips no window": {broken{op: change(func(o *ops.Attention) { o.Window = o.Window * 2 }), plan: func(p *ops.Plan) {
			for i := range p.Caches {
				p.Caches[i].Window *= 2
			}
		}}, "attention/1of2/k64v64/window8of8/picture", "values are wrong"},
		"sees before its window": {broken{before: func(b *ops.Batch) {
			for i := range b.Spans {
				b.Spans[i].From = 0
			}
		}}, "attention/2of2/k64v64/window0of0/windows", "values are wrong"},
		"forgets spans of outputs": {broken{op: func(op ops.Op, p *ops.Plan) ops.Op {
			if o, ok := op.(*ops.Attention); ok && p.Buffers[o.Q.Buf].Rows == ops.PerOut {
				changed := *o
				changed.Span = 0
				return &changed
			}
			return op
		}}, "attention/span-rows", "output rows differ"},
		"one position on all axes": {broken{before: func(b *ops.Batch) { b.Rotary = nil }}, "rope/sections", "values are wrong"},
		"lines for columns": {broken{before: func(b *ops.Batch) {
			for i := 0; i+2 < len(b.Rotary); i += 3 {
				b.Rotary[i+1], b.Rotary[i+2] = b.Rotary[i+2], b.Rotary[i+1]
			}
		}}, "rope/picture", "values are wrong"},
		"other slice":              {broken{op: change(func(o *ops.Deepstack) { o.Slice = 1 })}, "deepstack/", "got"},
		"other factor by position": {broken{op: change(func(o *ops.PosScale) { o.Offset++ })}, "posscale/", "values are wrong"},
	}
	checks := suite(config{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.b.Backend = ref.New()
			defer tt.b.Close()
			ran := 0
			var errs []error
			for _, c := range checks {
				if strings.HasPrefix(c.name, tt.check) {
					ran++
					errs = append(errs, c.run(&tt.b))
				}
			}
			err := errors.Join(errs...)
			if ran == 0 || err == nil {
				t.Fatalf("%d checks of %q found nothing", ran, tt.check)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want an error about %q", err, tt.says)
			}
		})
	}
}

// TestUnsupported shows that only what is declared may be refused, and that what is
// declared must be refused.
func TestUnsupported(t *testing.T) {
	var c config
	Unsupported("mamba1", "matmul/IQ1_S")(&c)
	refused := ops.ErrUnsupported
	for _, tt := range []struct {
		check string
		err   error
		want  string
	}{
		{"mamba1/24x16", refused, "mamba1"},
		{"matmul/IQ1_S/1x256", refused, "matmul/IQ1_S"},
		{"matmul/IQ1_M/1x256", refused, ""},
		{"mamba1x/24x16", refused, ""},
		{"mamba2/24x16", refused, ""},
		{"mamba1/24x16", errors.New("wrong"), ""},
		{"mamba1/24x16", nil, ""},
	} {
		if got, ok := c.refusal(tt.check, tt.err); got != tt.want || ok != (tt.want != "") {
			t.Errorf("refusal(%q, %v) = %q, %v, want %q", tt.check, tt.err, got, ok, tt.want)
		}
	}
	if err := c.unused(map[string]bool{"mamba1": true, "matmul/IQ1_S": true}); err != nil {
		t.Errorf("all refused: %v", err)
	}
	if err := c.unused(map[string]bool{"mamba1": true}); err == nil || !strings.Contains(err.Error(), "IQ1_S") {
		t.Errorf("got %v, want an error about matmul/IQ1_S", err)
	}
}
