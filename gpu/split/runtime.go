package split

import (
	"errors"
	"fmt"
	"slices"

	"ganglion/gpu/ops"
)

// side is a half on its backend.
type side struct {
	half
	rt      ops.Runtime
	name    string // for errors
	part    ops.Part
	paging  *ops.Paging
	groups  []int     // by the whole plan's groups: its own, −1 for none
	pages   []int32   // page tables of a batch
	state   []float32 // of a slot
	page    []byte    // of a group, as it is carried
	offsets []int     // by its states: where they begin in state
	floats  int       // of all its states
}

// Runtime is a plan in two halves. It belongs to one goroutine at a time.
type Runtime struct {
	plan   *ops.Plan
	opts   ops.Options
	paging *ops.Paging
	width  int // of a row that crosses, in floats
	sides  [2]*side
	closed bool
}

func newRuntime(b *Backend, p *ops.Plan, o ops.Options, c *cut, early, late ops.Runtime) *Runtime {
	r := &Runtime{plan: p, opts: o, paging: ops.NewPaging(p, o), width: c.width}
	r.sides[0] = r.newSide(b.first, c.first, early, holds(p.Ops, 0, c.at))
	r.sides[1] = r.newSide(b.second, c.second, late, holds(p.Ops, c.at, len(p.Ops)))
	return r
}

func (r *Runtime) newSide(b ops.Backend, h half, rt ops.Runtime, holds string) *side {
	s := &side{half: h, rt: rt, paging: ops.NewPaging(h.plan, r.opts),
		name: fmt.Sprintf("%s (%s)", holds, b.Name()),
		part: ops.Part{Backend: b.Name(), Device: b.Caps().Device, Holds: holds}}
	for _, g := range r.paging.Groups {
		s.groups = append(s.groups, slices.IndexFunc(s.paging.Groups, func(own ops.PageGroup) bool { return own.Window == g.Window }))
	}
	s.pages = make([]int32, s.paging.Entries())
	for _, st := range h.plan.States {
		s.offsets = append(s.offsets, s.floats)
		s.floats += st.Floats
	}
	return s
}

// failed says on which side an error happened.
func (s *side) failed(what string, err error) error {
	return fmt.Errorf("split: %s: %s: %w", what, s.name, err)
}

// tables fills the side's page tables from the whole plan's.
func (s *side) tables(r *Runtime, pages []int32) []int32 {
	n := r.opts.Slots * r.paging.PerSlot
	for whole, own := range s.groups {
		if own >= 0 {
			copy(s.pages[own*n:(own+1)*n], pages[whole*n:(whole+1)*n])
		}
	}
	return s.pages
}

// Compile prepares both halves; the first gives back every row of a batch.
func (r *Runtime) Compile(s ops.Shape) (ops.Program, error) {
	if err := r.usable("compile"); err != nil {
		return nil, err
	}
	if s.Rows <= 0 || s.Rows > r.opts.MaxRows || s.Outs < 0 || s.Outs > s.Rows {
		return nil, fmt.Errorf("split: compile: %d rows and %d outputs of at most %d rows", s.Rows, s.Outs, r.opts.MaxRows)
	}
	p := &Program{rt: r, shape: s}
	for i, shape := range []ops.Shape{{Rows: s.Rows, Outs: s.Rows}, s} {
		half, err := r.sides[i].rt.Compile(shape)
		if err != nil {
			p.Close()
			return nil, r.sides[i].failed("compile", err)
		}
		p.halves[i] = half
	}
	p.prepare()
	return p, nil
}

func (r *Runtime) usable(what string) error {
	if r.closed {
		return fmt.Errorf("split: %s: %w", what, ops.ErrClosed)
	}
	return nil
}

// CopyPage copies a page on the sides that have caches of the group.
func (r *Runtime) CopyPage(group, dst, src int) error {
	if err := r.usable("copy page"); err != nil {
		return err
	}
	if err := r.paging.CheckCopy(group, dst, src); err != nil {
		return err
	}
	for _, s := range r.sides {
		if own := s.groups[group]; own >= 0 {
			if err := s.rt.CopyPage(own, dst, src); err != nil {
				return s.failed("copy page", err)
			}
		}
	}
	return nil
}

// SaveState copies the states of both sides in the whole plan's order.
func (r *Runtime) SaveState(slot int, into []float32) ([]float32, error) {
	if err := r.usable("save state"); err != nil {
		return nil, err
	}
	for _, s := range r.sides {
		saved, err := s.rt.SaveState(slot, s.state)
		if err != nil {
			return nil, s.failed("save state", err)
		}
		s.state = saved
	}
	into = into[:0]
	for i := range r.plan.States {
		into = append(into, r.stateOf(i)...)
	}
	return into, nil
}

// stateOf is where a state of the whole plan lies in what its side has saved; it is empty
// for a state that no operation uses.
func (r *Runtime) stateOf(state int) []float32 {
	for _, s := range r.sides {
		if own := slices.Index(s.states, state); own >= 0 {
			at := s.offsets[own]
			return s.state[at : at+r.plan.States[state].Floats]
		}
	}
	return nil
}

// LoadState divides a saved state; nil sets the state of position 0.
func (r *Runtime) LoadState(slot int, saved []float32) error {
	if err := r.usable("load state"); err != nil {
		return err
	}
	want := 0
	for _, s := range r.sides {
		s.state = slices.Grow(s.state[:0], s.floats)[:s.floats]
		want += s.floats
	}
	if saved != nil && len(saved) != want {
		return fmt.Errorf("split: load state: %d floats, want %d", len(saved), want)
	}
	for i := range r.plan.States {
		if saved != nil {
			saved = saved[copy(r.stateOf(i), saved):]
		}
	}
	given := saved != nil
	for _, s := range r.sides {
		state := s.state
		if !given {
			state = nil
		}
		if err := s.rt.LoadState(slot, state); err != nil {
			return s.failed("load state", err)
		}
	}
	return nil
}

// Memory is that of both sides.
func (r *Runtime) Memory() ops.Memory {
	var m ops.Memory
	for _, p := range r.Parts() {
		m.Weights += p.Memory.Weights
		m.KV += p.Memory.KV
		m.Scratch += p.Memory.Scratch
	}
	return m
}

// Parts tells what lies on each side, the beginning first.
func (r *Runtime) Parts() []ops.Part {
	var parts []ops.Part
	for _, s := range r.sides {
		s.part.Memory = s.rt.Memory()
		parts = append(parts, s.part)
	}
	return parts
}

// Close frees both sides. It may be called twice.
func (r *Runtime) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	return errors.Join(r.sides[0].rt.Close(), r.sides[1].rt.Close())
}
