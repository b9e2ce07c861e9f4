// Package split runs a plan on two backends where the device that should run all of it
// has too little memory: the beginning on the first, usually the processor, and the end
// on the second, the device.
//
// The end goes to the device and not the beginning, because of the embedding table. A
// token reads one row of it where the table begins a plan, and all of it where the table
// is the head as well; a device that held the beginning would spend memory on a table
// that is hardly read, while the processor would stream the model's largest matrix for
// every token. So the device has the head, then the last layers, then earlier ones as far
// as they fit. A table that is the head too stands on both sides, and counts on both.
//
// The two halves are plans of their own. What the second needs of the first is copied by
// Rows operations into one row of floats for every row of a batch, read back as a whole,
// and given to the second as embeddings. Copies keep every bit, and every other operation
// stays as it was, so that in exact mode a cut changes nothing.
package split

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"ganglion/gpu/ops"
)

var (
	_ ops.Backend = (*Backend)(nil)
	_ ops.Runtime = (*Runtime)(nil)
	_ ops.Parted  = (*Runtime)(nil)
	_ ops.Program = (*Program)(nil)
)

// Backend loads plans on two backends. It is safe for concurrent use as far as they are.
type Backend struct {
	first, second ops.Backend
	budget        int64
	at            func(*ops.Plan) []int // where to try to cut; tests change it
	closed        atomic.Bool
}

// New returns a backend that puts as much of a plan's end on second as fits into budget
// bytes, caches and activations included, and the rest on first. Both belong to who gave
// them and must stay open as long as what is loaded.
func New(first, second ops.Backend, budget int64) *Backend {
	return &Backend{first: first, second: second, budget: budget, at: boundaries}
}

// Name is both names, the second before: it has the most work.
func (b *Backend) Name() string { return b.second.Name() + "+" + b.first.Name() }

// Caps is what both can do.
func (b *Backend) Caps() ops.Caps {
	c, d := b.second.Caps(), b.first.Caps()
	c.Device += " + " + d.Device
	c.Exact = c.Exact && d.Exact
	c.Fused = nil
	if c.MaxRange == 0 || (d.MaxRange > 0 && d.MaxRange < c.MaxRange) {
		c.MaxRange = d.MaxRange
	}
	return c
}

// Load cuts the plan where the most of it fits on the second backend. All of it goes
// there when it fits, and to the first when nothing does or no cut is possible. Where the
// second has less memory than was said the next smaller part is tried.
func (b *Backend) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	if b.closed.Load() {
		return nil, fmt.Errorf("split: load: %w", ops.ErrClosed)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	budget := b.budget
	if n := Need(p, o); n <= budget {
		rt, err := b.whole(ctx, b.second, p, o, progress)
		if !errors.Is(err, ops.ErrOutOfMemory) {
			return rt, err
		}
		budget = n - n/8
	}
	for _, k := range b.at(p) {
		c, err := newCut(p, k)
		if err != nil {
			continue
		}
		n := Need(c.second.plan, o)
		if n > budget {
			continue
		}
		rt, err := b.load(ctx, p, c, o, progress)
		if !errors.Is(err, ops.ErrOutOfMemory) || errors.Is(err, errFirst) {
			return rt, err
		}
		budget = n - n/8
	}
	return b.whole(ctx, b.first, p, o, progress)
}

// Forecast tells how a plan would be divided by a budget, with forecasts of what each part
// takes, the beginning first; nothing is loaded. Backend is
// "device" or "processor".
func Forecast(p *ops.Plan, o ops.Options, budget int64) []ops.Part {
	part := func(where string, p *ops.Plan, outs int, holds string) ops.Part {
		return ops.Part{Backend: where, Holds: holds, Memory: ops.Memory{Weights: p.WeightBytes(), KV: p.DeviceKVBytes(o), Scratch: scratch(p, o, outs)}}
	}
	if Need(p, o) <= budget {
		return []ops.Part{part("device", p, outs, "everything")}
	}
	for _, k := range boundaries(p) {
		if c, err := newCut(p, k); err == nil && Need(c.second.plan, o) <= budget {
			return []ops.Part{
				part("processor", c.first.plan, o.MaxRows, holds(p.Ops, 0, k)),
				part("device", c.second.plan, outs, holds(p.Ops, k, len(p.Ops))),
			}
		}
	}
	return []ops.Part{part("processor", p, outs, "everything")}
}

// errFirst marks errors of the first backend, which a smaller part of the second makes no
// better.
var errFirst = errors.New("on the first device")

// outs is how many outputs of a batch a forecast allows for.
const outs = 64

// Need is the forecast of what a plan takes on a device in bytes: weights as large as in
// the file, caches and states, activations and the embeddings of a batch.
func Need(p *ops.Plan, o ops.Options) int64 {
	return p.WeightBytes() + p.DeviceKVBytes(o) + scratch(p, o, outs)
}

func scratch(p *ops.Plan, o ops.Options, outs int) int64 {
	return p.ScratchBytes(o, outs) + 4*int64(p.Embed)*int64(o.MaxRows)
}

// whole loads all of a plan on one of the backends.
func (b *Backend) whole(ctx context.Context, on ops.Backend, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	rt, err := on.Load(ctx, p, o, progress)
	if err != nil {
		return nil, fmt.Errorf("split: load all on %s: %w", on.Name(), err)
	}
	return &single{Runtime: rt, part: ops.Part{Backend: on.Name(), Device: on.Caps().Device, Holds: "everything"}}, nil
}

// single is a plan that was not cut.
type single struct {
	ops.Runtime
	part ops.Part
}

// Parts is the one part.
func (s *single) Parts() []ops.Part {
	s.part.Memory = s.Memory()
	return []ops.Part{s.part}
}

// load loads both halves, the second first: it is the one that may not fit.
func (b *Backend) load(ctx context.Context, p *ops.Plan, c *cut, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	report := weigh(progress, p, c)
	late, err := b.second.Load(ctx, c.second.plan, o, report(0))
	if err != nil {
		return nil, fmt.Errorf("split: load %s on %s: %w", holds(p.Ops, c.at, len(p.Ops)), b.second.Name(), err)
	}
	early, err := b.first.Load(ctx, c.first.plan, o, report(c.second.plan.WeightBytes()))
	if err != nil {
		late.Close()
		return nil, fmt.Errorf("split: load %s on %s: %w (%w)", holds(p.Ops, 0, c.at), b.first.Name(), err, errFirst)
	}
	return newRuntime(b, p, o, c, early, late), nil
}

// weigh turns the progress of a half, which comes after some bytes of the other one, into
// that of the whole plan: a weight on both sides is loaded twice and counts once.
func weigh(progress func(done, total int64), p *ops.Plan, c *cut) func(before int64) func(done, total int64) {
	all, size := c.first.plan.WeightBytes()+c.second.plan.WeightBytes(), p.WeightBytes()
	return func(before int64) func(done, total int64) {
		if progress == nil {
			return nil
		}
		return func(done, _ int64) {
			whole := size
			if before+done < all {
				whole = int64(float64(before+done) / float64(all) * float64(size))
			}
			progress(whole, size)
		}
	}
}

// Close makes later loads fail; the two backends stay open. It may be called twice.
func (b *Backend) Close() error {
	b.closed.Store(true)
	return nil
}
