// Package kvcache keeps the books of the KV cache: which slot holds which tokens, on
// which pages their keys and values lie, and what is left of earlier sequences for a
// new prompt to begin with. The pages themselves belong to the backend; this package
// fills ops.Batch.Pages.
//
// Full pages of 64 positions enter a tree of known beginnings (tree.go) once the run
// that filled them has ended whole, and stay after their sequence until the pool needs
// them, least recently used first. A page is shared by reference: sequences that begin
// alike have the same page in their tables. Because the result for a row depends on
// its own sequence alone, reuse never changes an answer. Recurrent state cannot be cut
// to a length; snapshots of it (state.go) lie in the same tree, and such a sequence
// begins at a snapshot's length.
//
// The package imports gpu/ops alone and does no arithmetic on activations.
package kvcache

import (
	"errors"
	"fmt"

	"ganglion/gpu/ops"
)

// Device is what the books ask of a runtime; ops.Runtime satisfies it.
type Device interface {
	CopyPage(group, dst, src int) error
	SaveState(slot int, into []float32) ([]float32, error)
	LoadState(slot int, state []float32) error
}

// Cache is the book of all slots and pages of one runtime. It belongs to one
// goroutine.
type Cache struct {
	dev    Device
	paging *ops.Paging
	opts   ops.Options
	state  bool // the plan has recurrent state

	slots  []slot
	pools  []pool  // by group
	tables []int32 // ops.Batch.Pages
	roots  map[uint64]*node
	states snapshots
	clock  uint64 // counts uses, for what was used least recently
}

// slot is one running sequence.
type slot struct {
	busy   bool
	root   *node   // of the sequence's salt
	path   []*node // the sequence's full pages, as far as they are in the tree
	tokens []int32
	whole  int         // tokens whose run has ended whole
	bad    int         // first position with numbers that are not finite, -1: none
	prompt int         // length of the prompt
	states []*snapshot // of positions that are not in the tree yet
	mark   mark
}

// New makes the book for a plan's caches and states with the runtime's options.
func New(p *ops.Plan, o ops.Options, dev Device) *Cache {
	c := &Cache{dev: dev, paging: ops.NewPaging(p, o), opts: o, state: len(p.States) > 0, roots: make(map[uint64]*node)}
	c.states.most = o.Snapshots
	for _, g := range c.paging.Groups {
		c.pools = append(c.pools, newPool(g))
	}
	c.tables = make([]int32, c.paging.Entries())
	for i := range c.tables {
		c.tables[i] = -1
	}
	c.slots = make([]slot, o.Slots)
	for i := range c.slots {
		c.slots[i].tokens = make([]int32, 0, o.Context)
		c.slots[i].path = make([]*node, 0, c.paging.PerSlot)
		c.slots[i].mark.length, c.slots[i].bad = -1, -1
	}
	return c
}

// Tables are the page tables for a batch. They change with every call that changes a
// sequence.
func (c *Cache) Tables() []int32 { return c.tables }

// Reserved is the memory of the tables and of the snapshots when all are taken.
func (c *Cache) Reserved(p *ops.Plan) int64 { return 4*int64(len(c.tables)) + p.SnapshotBytes(c.opts) }

// Acquire takes a free slot for a prompt and puts as much of its beginning in place
// as is known under its salt. cached tells how much: less than len(prompt), for the
// last token must run to give logits. ok is false when every slot is busy.
func (c *Cache) Acquire(prompt []int32, salt uint64) (id, cached int, ok bool) {
	for id = range c.slots {
		if !c.slots[id].busy {
			break
		}
	}
	if len(c.slots) == 0 || c.slots[id].busy || len(prompt) == 0 {
		return 0, 0, false
	}
	s := &c.slots[id]
	s.busy, s.prompt, s.root = true, len(prompt), c.root(salt)
	s.root.refs++
	return id, c.place(id, prompt[:min(len(prompt)-1, c.opts.Context)]), true
}

// place puts as much of a beginning in place in an empty slot as is known under the
// slot's salt, and returns how many tokens that is.
func (c *Cache) place(id int, beginning []int32) int {
	s := &c.slots[id]
	m := c.match(s.root, beginning)
	for _, n := range c.candidates(m) {
		if c.visible(&m, n) && c.begin(id, m, n) { // an attempt before may have taken pages
			s.tokens = append(s.tokens, beginning[:n]...)
			s.whole = n
			return n
		}
	}
	return 0
}

// begin puts the first n tokens of a match in place; where that fails the slot is
// empty.
func (c *Cache) begin(id int, m match, n int) bool {
	s := &c.slots[id]
	if c.state {
		st := m.snapshot(n)
		if st == nil || c.dev.LoadState(id, st.state) != nil {
			return false
		}
		c.clock++
		st.used = c.clock
	}
	full := n / ops.PageSize
	for i := range full {
		s.path = append(s.path, m.node(i))
		m.node(i).refs++
	}
	c.touch(s)
	for g := range c.pools {
		for i := c.paging.Groups[g].First(n) / ops.PageSize; i < full; i++ {
			c.hold(id, g, i, m.node(i).pages[g])
		}
	}
	if n%ops.PageSize != 0 && !c.beginInside(id, m.node(full), n) {
		c.empty(id)
		return false
	}
	return true
}

// beginInside gives a slot its own page for the first positions of a node: the node's
// own page where it ends there and nobody else has it, else a copy.
func (c *Cache) beginInside(id int, from *node, n int) bool {
	if len(from.tokens) == n%ops.PageSize && from.refs == 0 && len(from.children) == 0 {
		return c.takeOver(id, from, n)
	}
	from.used = c.clock
	return c.copyPage(id, from, n)
}

// takeOver makes a leaf of the tree the last page of a slot. It fails where a group
// that has lost the page cannot give another one.
func (c *Cache) takeOver(id int, from *node, n int) bool {
	s := &c.slots[id]
	for g, page := range from.pages {
		if page >= 0 {
			c.pools[g].pages[page].node = nil
			c.hold(id, g, n/ops.PageSize, page)
			from.pages[g] = -1
		}
	}
	for _, st := range from.states {
		st.node, st.slot = nil, s
		st.length += n - n%ops.PageSize
	}
	s.states = append(s.states, from.states...)
	from.states = nil
	c.prune(from)
	for g := range c.pools {
		if !c.own(id, g, n/ops.PageSize) {
			return false
		}
	}
	return true
}

// copyPage gives a slot a copy of a node's page. It fails where no page is free, which
// is possible because the original must stay in the meantime.
func (c *Cache) copyPage(id int, from *node, n int) bool {
	i := n / ops.PageSize
	for g, page := range from.pages {
		c.pools[g].hold(page)
	}
	ok := true
	for g, page := range from.pages {
		ok = ok && c.own(id, g, i)
		if ok && page >= 0 {
			ok = c.dev.CopyPage(g, int(c.table(g, id)[i]), int(page)) == nil
		}
	}
	for g, page := range from.pages {
		c.pools[g].drop(page)
	}
	return ok
}

// Append adds a token to a busy slot and returns its position. Its page is there
// until it falls behind every window and what Truncate may take back.
func (c *Cache) Append(id int, token int32) (pos int, err error) {
	s, err := c.busy(id)
	if err != nil {
		return 0, err
	}
	pos = len(s.tokens)
	if s.bad >= 0 {
		return 0, fmt.Errorf("kvcache: slot %d: the numbers at position %d are not finite", id, s.bad)
	}
	if pos >= c.opts.Context {
		return 0, fmt.Errorf("kvcache: slot %d is full: %d positions", id, c.opts.Context)
	}
	if pos%ops.PageSize == 0 {
		for g := range c.pools {
			c.leaveBehind(id, g, pos+1)
			if !c.own(id, g, pos/ops.PageSize) {
				return 0, fmt.Errorf("kvcache: slot %d: no page for position %d in group %d of %d pages", id, pos, g, len(c.pools[g].pages))
			}
		}
	}
	s.tokens = append(s.tokens, token)
	return pos, nil
}

// leaveBehind lets go of the pages of a windowed group that nothing in a sequence of
// end positions can need: a row looks back a window, and Truncate may take back as
// many rows as a batch has.
func (c *Cache) leaveBehind(id, g, end int) {
	w := c.paging.Groups[g].Window
	if w <= 0 {
		return
	}
	table := c.table(g, id)
	for i := (end-w-c.opts.MaxRows)/ops.PageSize - 1; i >= 0 && table[i] >= 0; i-- {
		c.let(id, g, i)
	}
}

// Commit enters the tokens of a batch that has run whole: their full pages become
// known beginnings, and recurrent state is kept where a prompt ends or a large part
// of it.
func (c *Cache) Commit(ids []int) error {
	var errs []error
	for _, id := range ids {
		s, err := c.busy(id)
		if err != nil {
			return err
		}
		ran := len(s.tokens) - s.whole
		s.whole = len(s.tokens)
		if s.bad >= 0 {
			s.whole = min(s.whole, s.bad)
			continue
		}
		if c.state && (ran >= ops.PageSize || s.whole == s.prompt) {
			errs = append(errs, c.keepState(id))
		}
		c.seal(id)
	}
	return errors.Join(errs...)
}

// Spoil says that the numbers of a slot's row at a position are not finite: they must
// not become known. No token can follow until Truncate has taken the position back.
func (c *Cache) Spoil(id, pos int) {
	if s, err := c.busy(id); err == nil && (s.bad < 0 || pos < s.bad) {
		s.bad = pos
	}
}

// Truncate takes the tokens of a busy slot from position n on back and returns how
// many stay. These are n, unless recurrent state has to go back to an older snapshot,
// a window no longer reaches back, or no page is free for a copy of a shared one: the
// tokens from kept on must then run again.
func (c *Cache) Truncate(id, n int) (kept int, err error) {
	s, err := c.busy(id)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > len(s.tokens) {
		return 0, fmt.Errorf("kvcache: slot %d: truncate to %d of %d tokens", id, n, len(s.tokens))
	}
	if n == len(s.tokens) {
		return n, nil
	}
	for _, kept := range c.returns(id, n) {
		if kept > len(s.tokens) {
			continue // a cut before went to the start of the page
		}
		if err := c.restore(id, kept); err != nil {
			c.empty(id)
			return 0, err
		}
		if c.cut(id, kept) {
			c.forget(s)
			return kept, nil
		}
	}
	c.empty(id)
	return 0, nil
}

// cut goes back to length n, which is in reach: see returns. It is false when the page
// that it lies in is shared and cannot be copied; the slot is then cut to the page's
// start.
func (c *Cache) cut(id, n int) bool {
	s := &c.slots[id]
	full := n / ops.PageSize
	var shared *node
	if len(s.path) > full && n%ops.PageSize != 0 {
		shared = s.path[full]
		shared.refs++ // until it is copied
	}
	first := full // first page to let go
	if n%ops.PageSize != 0 && shared == nil {
		first++
	}
	for g := range c.pools {
		for i := first; i < c.paging.PerSlot; i++ {
			c.let(id, g, i)
		}
	}
	for len(s.path) > full {
		last := s.path[len(s.path)-1]
		s.path = s.path[:len(s.path)-1]
		last.refs--
		c.prune(last)
	}
	ok := true
	if shared != nil {
		ok = c.copyPage(id, shared, n)
		shared.refs--
		c.prune(shared)
	}
	if !ok {
		for g := range c.pools {
			c.let(id, g, full)
		}
		n = full * ops.PageSize
	}
	s.tokens, s.whole = s.tokens[:n], min(s.whole, n)
	return ok
}

// Reset forgets a busy slot's tokens: a failed run left the cells that it wrote in
// doubt. Pages in the tree were filled by earlier runs and stay.
func (c *Cache) Reset(id int) {
	if _, err := c.busy(id); err == nil {
		c.empty(id)
	}
}

// Release gives a slot back. Its tokens become known beginnings. Releasing a free slot
// does nothing.
func (c *Cache) Release(id int) {
	s, err := c.busy(id)
	if err != nil {
		return
	}
	if s.whole == len(s.tokens) {
		if c.state && s.whole > 0 {
			_ = c.keepState(id) // without it the sequence is only known up to an older one
		}
		c.sealTail(id)
	}
	c.empty(id)
	s.busy = false
	s.root.refs--
	c.prune(s.root)
	s.root = nil
}

// empty lets go of all that a slot holds.
func (c *Cache) empty(id int) {
	s := &c.slots[id]
	c.touch(s)
	for g := range c.pools {
		for i := range c.paging.PerSlot {
			c.let(id, g, i)
		}
	}
	for i := len(s.path) - 1; i >= 0; i-- {
		s.path[i].refs--
		c.prune(s.path[i])
	}
	for len(s.states) > 0 {
		c.states.release(s.states[0])
	}
	s.path, s.tokens, s.whole, s.mark.length, s.bad = s.path[:0], s.tokens[:0], 0, -1, -1
}

// touch notes a use of all nodes of a slot.
func (c *Cache) touch(s *slot) {
	c.clock++
	for _, n := range s.path {
		n.used = c.clock
	}
}

// Len is the number of tokens in a slot.
func (c *Cache) Len(id int) int {
	if id < 0 || id >= len(c.slots) {
		return 0
	}
	return len(c.slots[id].tokens)
}

// Free is the number of slots that Acquire could give out.
func (c *Cache) Free() int {
	n := 0
	for i := range c.slots {
		if !c.slots[i].busy {
			n++
		}
	}
	return n
}

func (c *Cache) busy(id int) (*slot, error) {
	if id < 0 || id >= len(c.slots) || !c.slots[id].busy {
		return nil, fmt.Errorf("kvcache: slot %d is not in use", id)
	}
	return &c.slots[id], nil
}
