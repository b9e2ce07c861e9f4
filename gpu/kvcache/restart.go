package kvcache

import "fmt"

// Sequence is what a busy slot holds: what must run again where its cells are lost.
type Sequence struct {
	Slot   int
	Tokens []int32
	Mark   int // length at which its recurrent state was marked, -1: nowhere
	Bad    int // first position with numbers that are not finite, -1: none
}

// Sequences are those of all busy slots. They belong to the caller.
func (c *Cache) Sequences() []Sequence {
	var out []Sequence
	for id := range c.slots {
		if q, ok := c.Sequence(id, nil); ok {
			out = append(out, q)
		}
	}
	return out
}

// Sequence is that of one busy slot, with its tokens in into[:0], which grows where it
// is too small. ok is false when the slot is not in use.
func (c *Cache) Sequence(id int, into []int32) (q Sequence, ok bool) {
	s, err := c.busy(id)
	if err != nil {
		return Sequence{Tokens: into[:0]}, false
	}
	return Sequence{Slot: id, Tokens: append(into[:0], s.tokens...), Mark: s.mark.length, Bad: s.bad}, true
}

// Restart turns the books to another runtime of the same plan and options, in which no
// cell is filled yet. What was known of finished sequences is forgotten; busy slots stay
// busy, under their salts, and are empty.
func (c *Cache) Restart(dev Device) {
	c.dev = dev
	for id := range c.slots {
		if c.slots[id].busy {
			c.empty(id)
		}
	}
	for _, root := range c.roots {
		for len(root.children) > 0 {
			c.remove(root.children[len(root.children)-1])
		}
	}
}

// Resume puts as much of a sequence's beginning in place in a busy slot that is empty as
// has become known since Restart, for sequences that begin alike need to run once. It
// returns how many tokens that is, up to all of them.
func (c *Cache) Resume(id int, beginning []int32) (n int, err error) {
	s, err := c.busy(id)
	if err != nil {
		return 0, err
	}
	if len(s.tokens) > 0 || len(beginning) > c.opts.Context {
		return 0, fmt.Errorf("kvcache: slot %d: resume %d tokens where %d are", id, len(beginning), len(s.tokens))
	}
	return c.place(id, beginning), nil
}

// Beginning is what Resume may put in place: not beyond the mark, which must be taken
// again, nor what a Truncate by a batch of most rows may take back, nor what is not
// finite.
func (q *Sequence) Beginning(most int) []int32 {
	n := max(len(q.Tokens)-most, 0)
	for _, limit := range []int{q.Mark, q.Bad} {
		if limit >= 0 {
			n = min(n, limit)
		}
	}
	return q.Tokens[:n]
}

// Cut is where a batch of at most most rows ends that runs the sequence again from
// position n on: at the mark, and before what is not finite, for nothing follows that.
func (q *Sequence) Cut(n, most int) int {
	end := min(n+most, len(q.Tokens))
	for _, at := range []int{q.Mark, q.Bad} {
		if n < at {
			end = min(end, at)
		}
	}
	return end
}

// Truncate takes the tokens from position n on back, n at most their number.
func (q *Sequence) Truncate(n int) {
	q.Tokens = q.Tokens[:n]
	if q.Mark > n {
		q.Mark = -1
	}
	if q.Bad >= n {
		q.Bad = -1
	}
}
