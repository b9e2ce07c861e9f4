// Package ref executes every operation of gpu/ops in the plainest Go. It is the
// oracle of the other backends and the answer to the question "what does this
// operation mean": each file holds one topic and each function reads like the
// definition in gpu/ops/op.go and gpu/DESIGN.md.
//
// It computes in exact mode always, for exact results are allowed in fast mode
// too. It promises no speed beyond being usable for tests. It may import gpu/ops
// and gpu/tensor only.
package ref

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"ganglion/gpu/ops"
)

var (
	_ ops.Backend = (*Backend)(nil)
	_ ops.Runtime = (*Runtime)(nil)
	_ ops.Program = (*Program)(nil)
)

// Backend runs plans with plain Go loops. It is safe for concurrent use.
type Backend struct {
	closed atomic.Bool
}

// New returns a backend; it holds nothing until a plan is loaded.
func New() *Backend { return &Backend{} }

// Name is "ref".
func (b *Backend) Name() string { return "ref" }

// Caps says that exact mode is available and nothing is fused.
func (b *Backend) Caps() ops.Caps {
	return ops.Caps{Device: "Go on " + runtime.GOARCH, Exact: true}
}

// Load checks the plan, widens its small weights and allocates caches and state.
func (b *Backend) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	if b.closed.Load() {
		return nil, fmt.Errorf("ops/ref: load: %w", ops.ErrClosed)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	r := &Runtime{plan: p, opts: o, paging: ops.NewPaging(p, o)}
	if err := r.widenWeights(ctx, progress); err != nil {
		return nil, err
	}
	for i, c := range p.Caches {
		group := r.paging.Of[i]
		r.caches = append(r.caches, newCache(c, group, r.paging.Groups[group].Pages, o.KV))
	}
	for _, s := range p.States {
		r.states = append(r.states, make([]float32, s.Floats*o.Slots))
	}
	for _, t := range p.Tables {
		r.tables = append(r.tables, newAngles(t, o.Context))
	}
	return r, nil
}

// Close makes later loads fail. It may be called twice.
func (b *Backend) Close() error {
	b.closed.Store(true)
	return nil
}

// Runtime is a loaded plan. It belongs to one goroutine at a time.
type Runtime struct {
	plan   *ops.Plan
	opts   ops.Options
	paging *ops.Paging

	vectors map[*ops.Weight][]float32 // small weights, widened
	caches  []*cache                  // by Plan.Caches
	states  [][]float32               // by Plan.States: [slots, floats]
	tables  []angles                  // by Plan.Tables
	scratch int64                     // bytes held by open programs
	closed  bool
}

// state is the recurrent state i of a slot.
func (r *Runtime) state(i, slot int) []float32 {
	n := r.plan.States[i].Floats
	return r.states[i][slot*n : (slot+1)*n]
}

// CopyPage copies a page of every cache of a group.
func (r *Runtime) CopyPage(group, dst, src int) error {
	if r.closed {
		return fmt.Errorf("ops/ref: copy page: %w", ops.ErrClosed)
	}
	if err := r.paging.CheckCopy(group, dst, src); err != nil {
		return err
	}
	for _, c := range r.caches {
		if c.group == group {
			c.copyPage(dst, src)
		}
	}
	return nil
}

// SaveState copies the recurrent state of a slot into into[:0]: the plan's states one
// after another. It is empty when the plan has none.
func (r *Runtime) SaveState(slot int, into []float32) ([]float32, error) {
	if err := r.checkSlot("save state", slot); err != nil {
		return nil, err
	}
	return ops.SaveStates(r.statesOf(slot), into), nil
}

// LoadState puts a saved state back; nil sets the state of position 0.
func (r *Runtime) LoadState(slot int, saved []float32) error {
	if err := r.checkSlot("load state", slot); err != nil {
		return err
	}
	return ops.LoadStates(r.statesOf(slot), saved)
}

// statesOf is the plan's states of one slot.
func (r *Runtime) statesOf(slot int) [][]float32 {
	states := make([][]float32, len(r.states))
	for i := range states {
		states[i] = r.state(i, slot)
	}
	return states
}

func (r *Runtime) checkSlot(what string, slot int) error {
	if r.closed {
		return fmt.Errorf("ops/ref: %s: %w", what, ops.ErrClosed)
	}
	if slot < 0 || slot >= r.opts.Slots {
		return fmt.Errorf("ops/ref: %s: slot %d of %d", what, slot, r.opts.Slots)
	}
	return nil
}

// Memory tells what was allocated; the scratch is that of the open programs and
// of the RoPE tables.
func (r *Runtime) Memory() ops.Memory {
	m := ops.Memory{Scratch: r.scratch}
	for _, v := range r.vectors {
		m.Weights += int64(len(v)) * 4
	}
	for _, c := range r.caches {
		m.KV += c.bytes()
	}
	for _, s := range r.states {
		m.KV += int64(len(s)) * 4
	}
	for _, t := range r.tables {
		m.Scratch += int64(len(t.cos)+len(t.sin)) * 4
	}
	return m
}

// Close lets the weights, caches and states go. It may be called twice.
func (r *Runtime) Close() error {
	*r = Runtime{plan: r.plan, opts: r.opts, closed: true}
	return nil
}
