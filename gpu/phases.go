package gpu

import (
	"errors"
	"fmt"

	"ganglion/gpu/ops"
	"ganglion/gpu/phase"
)

// Phases joins two backends: prompts run on one, tokens on the other, and both keep the
// whole model (gpu/phase). Where both are the same it is that one.
func (m *Machine) Phases(prompt, decode *Opened) *Opened {
	if prompt.same(decode) {
		return decode
	}
	return &Opened{Backend: phase.New(prompt.Backend, decode.Backend), m: m, sides: [2]*Opened{phase.Prompt: prompt, phase.Decode: decode}}
}

// phased tells whether o has a side for each phase.
func (o *Opened) phased() bool { return o.sides[phase.Decode] != nil }

// same tells whether two are the same backend on the same device.
func (o *Opened) same(p *Opened) bool {
	switch {
	case o.phased() || p.phased():
		return o == p
	case o.device != nil && p.device != nil:
		return deviceKey(*o.device) == deviceKey(*p.device)
	}
	return o.device == nil && p.device == nil && o.Backend.Name() == p.Backend.Name()
}

// Copies is how often a model lies in memory.
func (o *Opened) Copies() int { return ops.Copies(o.Backend) }

// Recovery is what an engine asks for the backend to go on with (engine.Config.Recover).
// Each engine has its own: with a device for each phase it remembers what is left.
func (o *Opened) Recovery() func(failure error, failures int) (ops.Backend, error) {
	if !o.phased() {
		return o.Recover
	}
	return (&recovery{m: o.m, sides: o.sides, failures: map[*Opened]int{}}).next
}

// recovery is what is left of two phases for one engine.
type recovery struct {
	m        *Machine
	sides    [2]*Opened
	alone    *Opened // where both phases run since the other side failed
	failures map[*Opened]int
}

// next goes on after a failure: the side that failed is opened anew or, where that is no
// use, left. Without a device for prompts tokens' does both; without one for tokens the
// processor takes them, and all where prompts are its own already.
func (r *recovery) next(failure error, _ int) (ops.Backend, error) {
	if r.alone != nil {
		return r.again(r.alone, failure)
	}
	var at *phase.Error
	if !errors.As(failure, &at) {
		return nil, nil // of none of the two
	}
	failed, other := r.sides[at.Phase], r.sides[1-at.Phase]
	b, err := r.again(failed, failure)
	if err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", at.Phase, err)
	}
	processor, err := r.m.processor()
	if err != nil {
		return nil, err
	}
	switch {
	case b != nil && b != processor:
		again := *failed
		again.Backend = b
		r.sides[at.Phase] = &again
		r.failures[&again] = r.failures[failed]
	case b != nil && at.Phase == phase.Decode && other.device != nil:
		r.sides[phase.Decode] = &Opened{Backend: processor, m: r.m}
	default: // also where the processor failed, after which comes nothing
		r.alone = other
		return other.Backend, nil
	}
	return phase.New(r.sides[phase.Prompt].Backend, r.sides[phase.Decode].Backend), nil
}

// again asks a side what follows after one more failure of its own.
func (r *recovery) again(o *Opened, failure error) (ops.Backend, error) {
	r.failures[o]++
	return o.Recover(failure, r.failures[o])
}
