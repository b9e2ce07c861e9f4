package kvcache

import (
	"cmp"
	"fmt"
	"slices"

	"ganglion/gpu/ops"
)

// snapshot is recurrent state after length tokens: of a node, counted from the node's
// first token on; of a slot, from the sequence's.
type snapshot struct {
	length int
	state  []float32
	used   uint64
	node   *node // exactly one of node and slot is set
	slot   *slot
}

// snapshots are all snapshots of known beginnings, at most most.
type snapshots struct {
	most int
	all  []*snapshot
	idle [][]float32 // memory of released ones
}

// mark is the snapshot that a caller asked for; length -1: none.
type mark struct {
	length int
	state  []float32
}

// release forgets a snapshot and keeps its memory.
func (s *snapshots) release(st *snapshot) {
	if st.node != nil {
		st.node.states = without(st.node.states, st)
	}
	if st.slot != nil {
		st.slot.states = without(st.slot.states, st)
	}
	s.all = without(s.all, st)
	s.idle = append(s.idle, st.state)
	st.node, st.slot, st.state = nil, nil, nil
}

func without(list []*snapshot, st *snapshot) []*snapshot {
	if i := slices.Index(list, st); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// Mark keeps a slot's recurrent state at its present length, for a later Truncate.
// The latest mark counts. Without recurrent state there is nothing to keep.
func (c *Cache) Mark(id int) error {
	s, err := c.busy(id)
	if err != nil || !c.state {
		return err
	}
	s.mark.length = -1
	if s.mark.state, err = c.dev.SaveState(id, s.mark.state); err != nil {
		return fmt.Errorf("kvcache: mark: %w", err)
	}
	s.mark.length = len(s.tokens)
	return nil
}

// keepState takes a snapshot of a slot for the tree; of too many the one used least
// recently is forgotten.
func (c *Cache) keepState(id int) error {
	s := &c.slots[id]
	if c.states.most == 0 || c.stateAt(s, s.whole) != nil {
		return nil
	}
	if len(c.states.all) >= c.states.most {
		old := slices.MinFunc(c.states.all, func(a, b *snapshot) int { return cmp.Compare(a.used, b.used) })
		n := old.node
		c.states.release(old)
		if n != nil {
			c.prune(n)
		}
	}
	var into []float32
	if n := len(c.states.idle); n > 0 {
		into, c.states.idle = c.states.idle[n-1], c.states.idle[:n-1]
	}
	state, err := c.dev.SaveState(id, into)
	if err != nil {
		return fmt.Errorf("kvcache: keep state: %w", err)
	}
	c.clock++
	st := &snapshot{length: s.whole, state: state, used: c.clock, slot: s}
	s.states = append(s.states, st)
	c.states.all = append(c.states.all, st)
	return nil
}

// giveStates moves a slot's snapshots of lengths in (from, to] to a node.
func (c *Cache) giveStates(s *slot, n *node, from, to int) {
	for _, st := range slices.Clone(s.states) {
		if st.length <= from || st.length > to {
			continue
		}
		s.states = without(s.states, st)
		st.length -= from
		c.adopt(n, st)
	}
}

// adopt makes a snapshot a node's, which needs but one of a length.
func (c *Cache) adopt(n *node, st *snapshot) {
	st.slot, st.node = nil, nil
	if slices.ContainsFunc(n.states, func(o *snapshot) bool { return o.length == st.length }) {
		c.states.release(st)
		return
	}
	st.node = n
	n.states = append(n.states, st)
}

// stateAt is a slot's own or shared snapshot at a length, or nil.
func (c *Cache) stateAt(s *slot, length int) *snapshot {
	for _, st := range s.states {
		if st.length == length {
			return st
		}
	}
	if i := (length - 1) / ops.PageSize; length > 0 && i < len(s.path) {
		for _, st := range s.path[i].states {
			if st.length == length-i*ops.PageSize {
				return st
			}
		}
	}
	return nil
}

// stateLengths are the lengths of a match for which there is a snapshot, longest
// first.
func (m *match) stateLengths() (lengths []int) {
	for i := len(m.path); i >= 0; i-- {
		n := m.node(i)
		if n == nil {
			continue
		}
		var here []int
		for _, st := range n.states {
			if i < len(m.path) || st.length <= m.run {
				here = append(here, i*ops.PageSize+st.length)
			}
		}
		slices.Sort(here)
		slices.Reverse(here)
		lengths = append(lengths, here...)
	}
	return lengths
}

// snapshot is the one at length n.
func (m *match) snapshot(n int) *snapshot {
	i := (n - 1) / ops.PageSize
	for _, st := range m.node(i).states {
		if st.length == n-i*ops.PageSize {
			return st
		}
	}
	return nil
}

// returns are the lengths up to n that Truncate can go back to, longest first: all
// that a row there looks back on must be in place, and recurrent state be kept.
func (c *Cache) returns(id, n int) (lengths []int) {
	s := &c.slots[id]
	if c.state {
		for length := n; length > 0; length-- {
			if length == s.mark.length || c.stateAt(s, length) != nil {
				lengths = append(lengths, length)
			}
		}
	} else {
		lengths = append(lengths, n, n-n%ops.PageSize)
	}
	return slices.DeleteFunc(lengths, func(n int) bool { return n == 0 || !c.inPlace(id, n) })
}

// inPlace tells whether a slot has the pages that a row at position n looks back on.
func (c *Cache) inPlace(id, n int) bool {
	for g, group := range c.paging.Groups {
		table := c.table(g, id)
		for pos := group.First(n); pos < n; pos = (pos/ops.PageSize + 1) * ops.PageSize {
			if table[pos/ops.PageSize] < 0 {
				return false
			}
		}
	}
	return true
}

// restore puts recurrent state back to length n, which returns gave.
func (c *Cache) restore(id, n int) error {
	if !c.state {
		return nil
	}
	s := &c.slots[id]
	state := s.mark.state
	if s.mark.length != n {
		state = c.stateAt(s, n).state
	}
	if err := c.dev.LoadState(id, state); err != nil {
		return fmt.Errorf("kvcache: truncate: %w", err)
	}
	return nil
}

// forget lets go of what a slot kept of lengths that it no longer has.
func (c *Cache) forget(s *slot) {
	if s.bad >= len(s.tokens) {
		s.bad = -1
	}
	if s.mark.length > len(s.tokens) {
		s.mark.length = -1
	}
	for _, st := range slices.Clone(s.states) {
		if st.length > len(s.tokens) {
			c.states.release(st)
		}
	}
}
