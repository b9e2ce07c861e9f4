// Package kvcache keeps the books of the KV cache: which slot holds which tokens,
// how much of a new prompt is already in place, and what may be taken back. The
// cells themselves belong to the backend; position p of a slot lies where
// ops.Cache says.
//
// A slot's tokens stay after its sequence has ended, so that the next prompt with
// the same beginning need not be computed again. Because the result for a row
// depends on its own sequence alone, reuse never changes an answer.
package kvcache

import (
	"fmt"

	"ganglion/gpu/ops"
)

// Slots is the book of all slots of one runtime. It belongs to one goroutine.
type Slots struct {
	slots []slot
	clock uint64
	rings []ring
	state bool // the plan has recurrent state, which cannot be cut back
	limit int  // context
}

type slot struct {
	tokens []int32
	salt   uint64 // tells apart sequences whose results differ for the same tokens
	high   int    // most positions the cells have held since position 0
	busy   bool
	used   uint64 // clock of the last release
}

// ring is a sliding-window cache: cells positions, of which a row looks back on
// window.
type ring struct{ cells, window int }

// New makes the book for a plan's caches with the runtime's options.
func New(p *ops.Plan, o ops.Options) *Slots {
	s := &Slots{slots: make([]slot, o.Slots), state: len(p.States) > 0, limit: o.Context}
	for i := range s.slots {
		s.slots[i].tokens = make([]int32, 0, o.Context)
	}
	seen := map[ring]bool{}
	for _, c := range p.Caches {
		r := ring{c.Cells(o.Context, o.MaxRows), c.Window}
		if c.Window > 0 && r.cells < o.Context && !seen[r] {
			seen[r] = true
			s.rings = append(s.rings, r)
		}
	}
	return s
}

// Acquire takes a free slot for a prompt: the one in which most of the prompt is
// in place, else the one unused for longest. cached tells how many of the
// prompt's tokens stay; it is less than len(prompt), for the last token must run
// to give logits. Only a slot of the same salt is reused. ok is false when every slot
// is busy.
func (s *Slots) Acquire(prompt []int32, salt uint64) (id, cached int, ok bool) {
	id = -1
	for i := range s.slots {
		c := &s.slots[i]
		if c.busy {
			continue
		}
		n := 0
		if c.salt == salt {
			n = s.usable(c, prompt)
		}
		if id < 0 || n > cached || (n == cached && c.used < s.slots[id].used) {
			id, cached = i, n
		}
	}
	if id < 0 {
		return 0, 0, false
	}
	s.slots[id].busy, s.slots[id].salt = true, salt
	s.truncate(id, cached)
	return id, cached, true
}

// usable is the length of the common prefix that may be kept in a slot.
func (s *Slots) usable(c *slot, prompt []int32) int {
	n := 0
	for n < len(c.tokens) && n < len(prompt)-1 && c.tokens[n] == prompt[n] {
		n++
	}
	if s.state && n != len(c.tokens) {
		return 0
	}
	if !s.whole(c, n) {
		return 0
	}
	return n
}

// whole tells whether the cells still hold what a row at position n looks back on.
func (s *Slots) whole(c *slot, n int) bool {
	for _, r := range s.rings {
		// Positions below high−cells have been overwritten; a row at position n
		// looks back to n−window+1.
		if c.high > r.cells && n-r.window+1 < c.high-r.cells {
			return false
		}
	}
	return true
}

// Truncate takes the tokens of a busy slot from position n on back and returns how
// many stay: n, or 0 when a sliding window no longer holds what position n looks back
// on. Recurrent state is the caller's to restore.
func (s *Slots) Truncate(id, n int) (kept int, err error) {
	c, err := s.busy(id)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > len(c.tokens) {
		return 0, fmt.Errorf("kvcache: slot %d: truncate to %d of %d tokens", id, n, len(c.tokens))
	}
	if n < len(c.tokens) && !s.whole(c, n) {
		n = 0
	}
	s.truncate(id, n)
	return n, nil
}

// Append adds a token to a busy slot and returns its position.
func (s *Slots) Append(id int, token int32) (pos int, err error) {
	c, err := s.busy(id)
	if err != nil {
		return 0, err
	}
	if len(c.tokens) >= s.limit {
		return 0, fmt.Errorf("kvcache: slot %d is full: %d positions", id, s.limit)
	}
	c.tokens = append(c.tokens, token)
	c.high = max(c.high, len(c.tokens))
	return len(c.tokens) - 1, nil
}

// Len is the number of tokens in a slot.
func (s *Slots) Len(id int) int {
	if id < 0 || id >= len(s.slots) {
		return 0
	}
	return len(s.slots[id].tokens)
}

// Reset forgets a busy slot's tokens, for instance after a failed run left its
// cells in doubt.
func (s *Slots) Reset(id int) {
	if c, err := s.busy(id); err == nil {
		c.tokens, c.high = c.tokens[:0], 0
	}
}

// Release gives a slot back. Its tokens stay for reuse. Releasing a free slot
// does nothing.
func (s *Slots) Release(id int) {
	if c, err := s.busy(id); err == nil {
		s.clock++
		c.busy, c.used = false, s.clock
	}
}

// Free is the number of slots that Acquire could give out.
func (s *Slots) Free() int {
	n := 0
	for i := range s.slots {
		if !s.slots[i].busy {
			n++
		}
	}
	return n
}

func (s *Slots) truncate(id, n int) {
	c := &s.slots[id]
	c.tokens = c.tokens[:n]
	if n == 0 {
		c.high = 0
	}
}

func (s *Slots) busy(id int) (*slot, error) {
	if id < 0 || id >= len(s.slots) || !s.slots[id].busy {
		return nil, fmt.Errorf("kvcache: slot %d is not in use", id)
	}
	return &s.slots[id], nil
}
