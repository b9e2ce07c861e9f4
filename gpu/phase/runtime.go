package phase

import (
	"context"
	"errors"
	"fmt"

	"ganglion/gpu/ops"
)

// side is the plan on one of the backends.
type side struct {
	phase    Phase
	name     string // of the backend
	device   string
	rt       ops.Runtime
	pages    ops.Carrier
	programs map[ops.Shape]ops.Program
	part     partBatch // of a batch that is divided
}

// Runtime is a plan on two backends. It belongs to one goroutine at a time.
type Runtime struct {
	b      *Backend
	plan   *ops.Plan
	opts   ops.Options
	paging *ops.Paging
	sides  [2]*side // by Phase
	held   [][]cells
	states []states
	carry  carry
	closed bool
}

func newRuntime(b *Backend, p *ops.Plan, o ops.Options) *Runtime {
	r := &Runtime{b: b, plan: p, opts: o, paging: ops.NewPaging(p, o)}
	for _, g := range r.paging.Groups {
		r.held = append(r.held, make([]cells, g.Pages))
	}
	r.states = make([]states, o.Slots)
	for i := range r.states {
		r.states[i] = states{true, true} // zeros
	}
	return r
}

func (r *Runtime) load(ctx context.Context, phase Phase, on ops.Backend, progress func(done, total int64)) error {
	s := &side{phase: phase, name: on.Name(), device: on.Caps().Device, programs: make(map[ops.Shape]ops.Program)}
	rt, err := on.Load(ctx, r.plan, r.opts, progress)
	if err != nil {
		return s.failed("load", err)
	}
	s.rt, r.sides[phase] = rt, s
	if s.pages, _ = rt.(ops.Carrier); s.pages == nil {
		return s.failed("load", fmt.Errorf("its pages cannot be carried: %w", ops.ErrUnsupported))
	}
	return nil
}

// failed says on which side an error happened.
func (s *side) failed(what string, err error) error {
	return &Error{Phase: s.phase, What: what, On: s.name, Err: err}
}

// program is a side's program for a shape. It is compiled when it is first needed and
// belongs to the side, for several programs of the runtime may use it.
func (s *side) program(shape ops.Shape) (ops.Program, error) {
	if p, ok := s.programs[shape]; ok {
		return p, nil
	}
	p, err := s.rt.Compile(shape)
	if err != nil {
		return nil, s.failed("compile", err)
	}
	s.programs[shape] = p
	return p, nil
}

func (r *Runtime) usable(what string) error {
	if r.closed {
		return fmt.Errorf("phase: %s: %w", what, ops.ErrClosed)
	}
	return nil
}

// Compile prepares a program; each side compiles what it is the first to need, the one
// that a batch of this size from one sequence runs on now.
func (r *Runtime) Compile(s ops.Shape) (ops.Program, error) {
	if err := r.usable("compile"); err != nil {
		return nil, err
	}
	if s.Rows <= 0 || s.Rows > r.opts.MaxRows || s.Outs < 0 || s.Outs > s.Rows {
		return nil, fmt.Errorf("phase: compile: %d rows and %d outputs of at most %d rows", s.Rows, s.Outs, r.opts.MaxRows)
	}
	if _, err := r.sides[r.b.decide(0, s.Rows, s.Outs)].program(s); err != nil {
		return nil, err
	}
	return &Program{rt: r, shape: s}, nil
}

// CopyPage copies a page on the sides that have something of it.
func (r *Runtime) CopyPage(group, dst, src int) error {
	if err := r.usable("copy page"); err != nil {
		return err
	}
	if err := r.paging.CheckCopy(group, dst, src); err != nil {
		return err
	}
	held := r.held[group]
	for phase, s := range r.sides {
		if held[dst][phase] = 0; held[src][phase] == 0 {
			continue
		}
		if err := s.rt.CopyPage(group, dst, src); err != nil {
			return s.failed("copy page", err)
		}
		held[dst][phase] = held[src][phase]
	}
	return nil
}

// SaveState copies the recurrent state of a slot from a side that has it.
func (r *Runtime) SaveState(slot int, into []float32) ([]float32, error) {
	if err := r.checkSlot("save state", slot); err != nil {
		return nil, err
	}
	s := r.sides[r.states[slot].side()]
	saved, err := s.rt.SaveState(slot, into)
	if err != nil {
		return nil, s.failed("save state", err)
	}
	return saved, nil
}

// LoadState puts a state in place on both sides; nil sets that of position 0. A plan
// without states has nothing to carry here.
func (r *Runtime) LoadState(slot int, saved []float32) error {
	if err := r.checkSlot("load state", slot); err != nil {
		return err
	}
	for phase, s := range r.sides {
		r.states[slot][phase] = false
		if err := s.rt.LoadState(slot, saved); err != nil {
			return s.failed("load state", err)
		}
		r.states[slot][phase] = true
	}
	return nil
}

func (r *Runtime) checkSlot(what string, slot int) error {
	if err := r.usable(what); err != nil {
		return err
	}
	if slot < 0 || slot >= r.opts.Slots {
		return fmt.Errorf("phase: %s: slot %d of %d", what, slot, r.opts.Slots)
	}
	return nil
}

// Memory is that of both sides.
func (r *Runtime) Memory() ops.Memory {
	var m ops.Memory
	for _, s := range r.sides {
		if s != nil && s.rt != nil {
			one := s.rt.Memory()
			m.Weights += one.Weights
			m.KV += one.KV
			m.Scratch += one.Scratch
		}
	}
	return m
}

// Parts tells what lies on each side, that of prompts first.
func (r *Runtime) Parts() []ops.Part {
	var parts []ops.Part
	for _, s := range r.sides {
		own := []ops.Part{{Backend: s.name, Device: s.device, Holds: "everything", Memory: s.rt.Memory()}}
		if p, ok := s.rt.(ops.Parted); ok {
			own = p.Parts()
		}
		for _, p := range own {
			p.Phase = s.phase.String()
			parts = append(parts, p)
		}
	}
	return parts
}

// Close frees both sides. It may be called twice.
func (r *Runtime) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	for _, s := range r.sides {
		if s == nil {
			continue
		}
		for _, p := range s.programs {
			errs = append(errs, p.Close())
		}
		errs = append(errs, s.rt.Close())
	}
	return errors.Join(errs...)
}
