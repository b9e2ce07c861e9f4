// Package phase runs a plan on two backends that both have all of it: prompts on one,
// tokens on the other. A GPU that multiplies well and reads no faster than the processor,
// as most edge devices do, is the better one for prompts alone.
//
// A batch is divided by sequences: a part with many rows whose logits nobody wants is a
// prompt's, the rest decodes (program.go). What a sequence left on the other backend is
// carried over before it goes on, page by page and only what is missing there (carry.go);
// of a prompt that was read, this is once. A row's result depends on its own sequence
// alone, so in exact mode the bits are those of one backend, whichever ran what. In fast
// mode each backend keeps its promise for itself: the last digits depend on where a row
// ran, as they do from device to device.
//
// The price is memory, for weights and caches lie on both sides (ops.Copied), and carrying.
// Who opens a Backend decides whether the gain is worth it (gpu/probe). Rejected: two
// engines that share one book of slots, for all that an engine does with a runtime, such as
// copies of pages, going back, snapshots and failover, would have to know of sides.
//
// It may import gpu/ops alone.
package phase

import (
	"context"
	"fmt"
	"sync/atomic"

	"ganglion/gpu/ops"
)

var (
	_ ops.Backend = (*Backend)(nil)
	_ ops.Copied  = (*Backend)(nil)
	_ ops.Runtime = (*Runtime)(nil)
	_ ops.Carrier = (*Runtime)(nil)
	_ ops.Parted  = (*Runtime)(nil)
	_ ops.Program = (*Program)(nil)
)

// Phase is a side of a Backend.
type Phase int

// The phases.
const (
	Prompt Phase = iota
	Decode
)

// String is the phase's name in ops.Part.
func (p Phase) String() string {
	if p == Prompt {
		return ops.PhasePrompt
	}
	return ops.PhaseDecode
}

// Error says on which side a call failed.
type Error struct {
	Phase Phase
	What  string // "load", "run" …
	On    string // name of the backend
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("phase: %s: %s on %s: %v", e.What, e.Phase, e.On, e.Err)
}

// Unwrap is the side's error.
func (e *Error) Unwrap() error { return e.Err }

// Backend loads plans on two backends. It is safe for concurrent use as far as they are.
type Backend struct {
	sides  [2]ops.Backend // by Phase
	decide func(from, rows, wanted int) Phase
	closed atomic.Bool
}

// New returns a backend with prompts on one backend and tokens on another. Both belong to
// who gave them and must stay open as long as what is loaded.
func New(prompt, decode ops.Backend) *Backend {
	return &Backend{sides: [2]ops.Backend{Prompt: prompt, Decode: decode}, decide: phaseOf}
}

// Name is both names, that of prompts first.
func (b *Backend) Name() string { return b.sides[Prompt].Name() + "/" + b.sides[Decode].Name() }

// Caps is what both can do.
func (b *Backend) Caps() ops.Caps {
	c, d := b.sides[Prompt].Caps(), b.sides[Decode].Caps()
	c.Device = "prompts: " + c.Device + ", tokens: " + d.Device
	c.Exact = c.Exact && d.Exact
	c.Fused = nil
	if c.MaxRange == 0 || (d.MaxRange > 0 && d.MaxRange < c.MaxRange) {
		c.MaxRange = d.MaxRange
	}
	return c
}

// Copies is 2, or more where a side has several itself.
func (b *Backend) Copies() int { return ops.Copies(b.sides[Prompt]) + ops.Copies(b.sides[Decode]) }

// Load loads the whole plan on both sides.
func (b *Backend) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	if b.closed.Load() {
		return nil, fmt.Errorf("phase: load: %w", ops.ErrClosed)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	r := newRuntime(b, p, o)
	for phase, on := range b.sides {
		var half func(done, total int64)
		if progress != nil {
			half = func(done, total int64) { progress((int64(phase)*total+done)/2, total) }
		}
		if err := r.load(ctx, Phase(phase), on, half); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// Close makes later loads fail; the two backends stay open. It may be called twice.
func (b *Backend) Close() error {
	b.closed.Store(true)
	return nil
}
