package kvcache

import (
	"errors"
	"fmt"
	"testing"

	"ganglion/gpu/ops"
)

// fake is a device that keeps, instead of keys and values, a fingerprint of the whole
// sequence up to a position in its cell, and as recurrent state the fingerprint of all
// that the slot has run.
type fake struct {
	cells  [][]uint64 // by group
	states []uint64   // by slot
	faults bool       // every call fails
}

func newFake(p *ops.Plan, o ops.Options) *fake {
	f := &fake{states: make([]uint64, o.Slots)}
	for _, g := range ops.NewPaging(p, o).Groups {
		f.cells = append(f.cells, make([]uint64, g.Pages*ops.PageSize))
	}
	return f
}

// blank is a device of the same size with nothing on it.
func (f *fake) blank() *fake {
	b := &fake{states: make([]uint64, len(f.states))}
	for _, cells := range f.cells {
		b.cells = append(b.cells, make([]uint64, len(cells)))
	}
	return b
}

func (f *fake) CopyPage(group, dst, src int) error {
	if f.faults {
		return errors.New("fault")
	}
	copy(f.cells[group][dst*ops.PageSize:(dst+1)*ops.PageSize], f.cells[group][src*ops.PageSize:])
	return nil
}

func (f *fake) SaveState(slot int, into []float32) ([]float32, error) {
	if f.faults {
		return nil, errors.New("fault")
	}
	s := f.states[slot]
	return append(into[:0], float32(s>>48), float32(s>>32&0xFFFF), float32(s>>16&0xFFFF), float32(s&0xFFFF)), nil
}

func (f *fake) LoadState(slot int, v []float32) error {
	if f.faults {
		return errors.New("fault")
	}
	f.states[slot] = uint64(v[0])<<48 | uint64(v[1])<<32 | uint64(v[2])<<16 | uint64(v[3])
	return nil
}

// print is the fingerprint of a sequence.
func print(salt uint64, tokens []int32) uint64 {
	h := 14695981039346656037 ^ salt*31
	for _, t := range tokens {
		h = (h ^ uint64(uint32(t))) * 1099511628211
	}
	return h
}

// rig is a book with its device.
type rig struct {
	t     failer
	c     *Cache
	dev   *fake
	state bool
	salts []uint64
	begun []int // by slot: how many tokens were in place when its sequence began
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func newRig(t failer, windows []int, states int, o ops.Options) *rig {
	p := &ops.Plan{}
	for _, w := range windows {
		p.Caches = append(p.Caches, ops.Cache{KVHeads: 1, KeyDim: 1, ValueDim: 1, Window: w})
	}
	for range states {
		p.States = append(p.States, ops.State{Floats: 4})
	}
	dev := newFake(p, o)
	return &rig{t, New(p, o, dev), dev, states > 0, make([]uint64, o.Slots), make([]int, o.Slots)}
}

// acquire takes a slot and checks what is said to be in place.
func (r *rig) acquire(prompt []int32, salt uint64) (id, cached int, ok bool) {
	r.t.Helper()
	id, cached, ok = r.c.Acquire(prompt, salt)
	if !ok {
		return
	}
	if cached < 0 || cached >= len(prompt) || cached != r.c.Len(id) {
		r.t.Fatalf("%d of %d prompt tokens in place, length %d", cached, len(prompt), r.c.Len(id))
	}
	r.salts[id], r.begun[id] = salt, cached
	if cached == 0 {
		r.dev.states[id] = print(salt, nil) // position 0 starts from nothing
	}
	return
}

// run runs tokens as one batch, looks at everything that its rows see, and commits.
func (r *rig) run(id int, tokens ...int32) {
	r.t.Helper()
	if err := r.tryRun(id, tokens); err != nil {
		r.t.Fatalf("%v", err)
	}
}

func (r *rig) tryRun(id int, tokens []int32) error {
	from := r.c.Len(id)
	for _, tok := range tokens {
		if _, err := r.c.Append(id, tok); err != nil {
			return err
		}
	}
	all := r.c.slots[id].tokens
	b := ops.Batch{Pages: r.c.Tables()}
	for i := range tokens {
		b.Pos, b.Slot = append(b.Pos, int32(from+i)), append(b.Slot, int32(id))
	}
	if err := b.CheckPages(r.c.paging); err != nil {
		return err
	}
	cell := func(g, pos int) *uint64 {
		return &r.dev.cells[g][int(r.c.table(g, id)[pos/ops.PageSize])*ops.PageSize+pos%ops.PageSize]
	}
	if r.state && from == 0 {
		r.dev.states[id] = print(r.salts[id], nil)
	}
	for i := range tokens {
		pos := from + i
		want := print(r.salts[id], all[:pos+1])
		for g, group := range r.c.paging.Groups {
			*cell(g, pos) = want
			for see := group.First(pos); see < pos; see++ {
				if got := *cell(g, see); got != print(r.salts[id], all[:see+1]) {
					return fmt.Errorf("slot %d, group %d: position %d sees a wrong cell at position %d", id, g, pos, see)
				}
			}
		}
		if r.state {
			if r.dev.states[id] != print(r.salts[id], all[:pos]) {
				return fmt.Errorf("slot %d: wrong state at position %d", id, pos)
			}
			r.dev.states[id] = want
		}
	}
	if err := r.c.Commit([]int{id}); err != nil {
		return err
	}
	return r.check()
}

// check holds the books against themselves.
func (r *rig) check() error {
	refs := make([]map[int32]int, len(r.c.pools))
	for g := range refs {
		refs[g] = map[int32]int{}
		for id := range r.c.slots {
			for _, page := range r.c.table(g, id) {
				if page >= 0 {
					refs[g][page]++
				}
			}
		}
	}
	nodes, states := 0, 0
	onPath := map[*node]int{}
	for i := range r.c.slots {
		s := &r.c.slots[i]
		states += len(s.states)
		for _, n := range s.path {
			onPath[n]++
		}
		if !s.busy && (len(s.path) > 0 || len(s.tokens) > 0 || s.root != nil) {
			return fmt.Errorf("free slot %d holds something", i)
		}
	}
	has := make([]map[int32]*node, len(r.c.pools))
	for g := range has {
		has[g] = map[int32]*node{}
	}
	var walk func(n *node) error
	walk = func(n *node) error {
		nodes++
		states += len(n.states)
		if n.parent != nil && n.refs != onPath[n] {
			return fmt.Errorf("node at depth %d: %d references, on %d paths", n.depth, n.refs, onPath[n])
		}
		if n.parent != nil && n.refs == 0 && len(n.children) == 0 && len(n.states) == 0 {
			empty := true
			for _, p := range n.pages {
				empty = empty && p < 0
			}
			if empty {
				return fmt.Errorf("node at depth %d knows nothing", n.depth)
			}
		}
		for g, page := range n.pages {
			if page >= 0 {
				if has[g][page] != nil {
					return fmt.Errorf("page %d of group %d is two nodes'", page, g)
				}
				has[g][page] = n
			}
		}
		for _, child := range n.children {
			if child.parent != n || (n.parent != nil && len(n.tokens) < ops.PageSize) || (n.parent != nil && child.used > n.used) {
				return fmt.Errorf("node at depth %d: wrong parent, or older than what follows it", child.depth)
			}
			if err := walk(child); err != nil {
				return err
			}
		}
		return nil
	}
	for salt, root := range r.c.roots {
		if root.salt != salt {
			return fmt.Errorf("root of salt %d is at %d", root.salt, salt)
		}
		if err := walk(root); err != nil {
			return err
		}
	}
	for g := range r.c.pools {
		free := map[int32]bool{}
		for _, page := range r.c.pools[g].free {
			if free[page] {
				return fmt.Errorf("page %d of group %d is free twice", page, g)
			}
			free[page] = true
		}
		for i, p := range r.c.pools[g].pages {
			page := int32(i)
			if p.refs != refs[g][page] || p.node != has[g][page] || free[page] != (p.refs == 0 && p.node == nil) {
				return fmt.Errorf("page %d of group %d: %d references for %d entries, node %v for %v, free %v",
					i, g, p.refs, refs[g][page], p.node, has[g][page], free[page])
			}
		}
	}
	if states != len(r.c.states.all) || states > r.c.states.most {
		return fmt.Errorf("%d snapshots are held, %d known, %d allowed", states, len(r.c.states.all), r.c.states.most)
	}
	return nil
}

func (r *rig) checked() {
	r.t.Helper()
	if err := r.check(); err != nil {
		r.t.Fatalf("%v", err)
	}
}

func seq(from, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(from + i)
	}
	return out
}

var _ failer = (*testing.T)(nil)
