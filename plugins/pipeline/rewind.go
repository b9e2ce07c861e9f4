package pipeline

import (
	"ganglion/plugins/abi"
)

// ring holds the states of the plugins at the latest steps, where a plugin may take
// tokens back. A plugin that alone may do so keeps its memory and is not in it.
type ring struct {
	states []state
	off    bool // the states would be too large: plugins read the text again instead
}

// state is the plugins' state before the step at a length of the sequence.
type state struct {
	length int
	wake   []int
	memory [][]byte // by plugin; nil: not held
}

// kept tells whether the ring holds a plugin's state.
func (p *Pipeline) kept(g *plugin) bool {
	if g.in == nil || g.spec.Manifest.Draft != abi.DraftSnapshot {
		return false
	}
	for _, o := range p.plugins {
		if o != g && o.in != nil && o.spec.Manifest.View.Holdback > 0 {
			return true
		}
	}
	return false
}

// save puts the present state into the ring, over the oldest one.
func (p *Pipeline) save() {
	if p.holdback == 0 || p.ring.off {
		return
	}
	r := &p.ring
	if r.states == nil {
		r.states = make([]state, p.holdback+1)
		for i := range r.states {
			r.states[i] = state{length: -1, wake: make([]int, len(p.plugins)), memory: make([][]byte, len(p.plugins))}
		}
	}
	s := &r.states[len(p.tokens)%len(r.states)]
	s.length = len(p.tokens)
	size := 0
	for i, g := range p.plugins {
		s.wake[i] = g.wake
		if !p.kept(g) {
			s.memory[i] = nil
			continue
		}
		m, err := g.in.Snapshot(s.memory[i][:0])
		if err != nil {
			m = nil
		}
		s.memory[i] = m
		size += len(m)
	}
	if size*len(r.states) > ringBytes {
		*r = ring{off: true}
	}
}

// at returns the state at a length, nil when it is not held.
func (r *ring) at(length int) *state {
	for i := range r.states {
		if r.states[i].length == length {
			return &r.states[i]
		}
	}
	return nil
}

// Rewind takes back n tokens, as the latest verdict asked for. The plugin that asked
// keeps its memory; all others are put back to where they were.
func (p *Pipeline) Rewind(n int) error {
	first := p.tokens[len(p.tokens)-n]
	p.tokens = p.tokens[:len(p.tokens)-n]
	p.changes = p.changes[:0]
	p.changed(p.asker, ChangeRewound, first)
	p.forced, p.instead = p.instead, p.forced[:0]
	p.taken, p.stop, p.forcer = 0, p.stopping, p.asker
	s := p.ring.at(len(p.tokens))
	for i, g := range p.plugins {
		if g.in == nil {
			continue
		}
		if g == p.asker {
			g.report.Rewinds++
			g.report.Changed += n
			g.wake = 0 // it has something to ban
			g.hist.forget()
			continue
		}
		if e := p.putBack(g, i, s, n); e != nil {
			if e = p.failed(g, e); e != nil {
				return e
			}
		}
	}
	for i := range p.ring.states {
		if st := &p.ring.states[i]; st.length > len(p.tokens) {
			st.length = -1
		}
	}
	p.settle()
	return nil
}

// putBack brings one plugin to where it was n tokens ago.
func (p *Pipeline) putBack(g *plugin, i int, s *state, n int) *Error {
	g.hist.forget()
	switch {
	case s != nil && s.memory[i] != nil:
		if err := g.in.Restore(s.memory[i]); err != nil {
			return g.called(p.now(), err)
		}
		g.wake = s.wake[i]
		return nil
	case g.spec.Manifest.Draft == abi.DraftSelf && g.in.Has(abi.HookRollback):
		f := p.fill(g, abi.HookRollback, p.now(), 0)
		f.put(abi.OffBacktrack, uint32(n))
		g.wake = 0
		_, e := p.call(g, abi.HookRollback)
		return e
	}
	return p.reopen(g)
}
