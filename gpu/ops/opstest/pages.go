package opstest

import (
	"context"
	"fmt"
	"unsafe"

	"ganglion/gpu/ops"
)

// pager gives the rows of batches their pages, as gpu/kvcache does, but in random
// order, so that a backend that takes a page's number for its place is found. Windowed
// groups give back what lies further behind than a window and a batch.
type pager struct {
	opts   ops.Options
	paging *ops.Paging
	free   [][]int32 // by group
	tables []int32   // Batch.Pages
}

func newPager(p *ops.Plan, o ops.Options) *pager {
	g := &pager{opts: o, paging: ops.NewPaging(p, o)}
	r := random("pages")
	for _, group := range g.paging.Groups {
		var free []int32
		for _, page := range r.Perm(group.Pages) {
			free = append(free, int32(page))
		}
		g.free = append(g.free, free)
	}
	g.tables = make([]int32, g.paging.Entries())
	for i := range g.tables {
		g.tables[i] = -1
	}
	return g
}

// place gives every position that a batch can see or writes a page. A batch that
// breaks the rules of batches is left to the backend, which must refuse it.
func (g *pager) place(b *ops.Batch) {
	if b.Pages == nil || unsafe.SliceData(b.Pages) == unsafe.SliceData(g.tables) { // not the check's own
		b.Pages = g.tables
	} else {
		return
	}
	for from := 0; from < len(b.Slot); {
		to := from + 1
		for to < len(b.Slot) && b.Slot[to] == b.Slot[from] {
			to++
		}
		last := len(b.Pos)
		if to <= last && b.Slot[from] >= 0 && int(b.Slot[from]) < g.opts.Slots && b.Pos[from] >= 0 && int(b.Pos[to-1]) < g.opts.Context {
			for i := range g.paging.Groups {
				g.placeSlot(i, int(b.Slot[from]), int(b.Pos[from]), int(b.Pos[to-1])+1)
			}
		}
		from = to
	}
}

// placeSlot holds the pages of positions [from, to) and of what is before them.
func (g *pager) placeSlot(group, slot, from, to int) {
	window := g.paging.Groups[group].Window
	table := g.paging.Table(g.tables, group, slot)
	for page := range table {
		start, end := page*ops.PageSize, (page+1)*ops.PageSize
		behind := window > 0 && end <= to-window-g.opts.MaxRows
		switch {
		case table[page] >= 0 && (behind || start >= to):
			g.free[group] = append(g.free[group], table[page])
			table[page] = -1
		case table[page] < 0 && start < to && end > g.paging.Groups[group].First(from):
			n := len(g.free[group]) - 1
			table[page], g.free[group] = g.free[group][n], g.free[group][:n]
		}
	}
}

// Load loads a plan and lets every batch without page tables have some.
func Load(b ops.Backend, p *ops.Plan, o ops.Options) (ops.Runtime, error) {
	rt, err := b.Load(context.Background(), p, o, nil)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return pagedRuntime{rt, newPager(p, o)}, nil
}

type pagedRuntime struct {
	ops.Runtime
	pager *pager
}

func (r pagedRuntime) Compile(s ops.Shape) (ops.Program, error) {
	p, err := r.Runtime.Compile(s)
	if err != nil {
		return nil, err
	}
	return pagedProgram{p, r.pager}, nil
}

type pagedProgram struct {
	ops.Program
	pager *pager
}

func (p pagedProgram) Run(b *ops.Batch, r *ops.Result) error {
	p.pager.place(b)
	return p.Program.Run(b, r)
}
