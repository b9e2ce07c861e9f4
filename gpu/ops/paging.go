package ops

import "fmt"

// PageSize is the number of positions in a page of a KV cache. It divides KVChunk.
const PageSize = 64

// Paging says how the KV caches of a plan are cut into pages for given options.
// Caches with the same window form a group: they need the same positions at all
// times, so one page number stands for a page of each of them. A sequence's position
// p lies in cell p mod PageSize of the page that Batch.Pages names for it.
type Paging struct {
	PerSlot int         // entries of one slot's table: pages of a whole context
	Groups  []PageGroup // in the order in which the plan's caches name their windows
	Of      []int       // by Plan.Caches: the cache's group
	Slots   int
}

// PageGroup is the pool of pages of one group.
type PageGroup struct {
	Window int // of its caches; 0 = all positions
	Pages  int // pages in the pool
}

// NewPaging computes the groups of a plan and the size of their pools: what all slots
// can need at once, so that a running sequence never lacks a page, and Options.Spare.
func NewPaging(p *Plan, o Options) *Paging {
	g := &Paging{PerSlot: pages(o.Context), Slots: o.Slots, Of: make([]int, len(p.Caches))}
	for i, c := range p.Caches {
		g.Of[i] = -1
		for j := range g.Groups {
			if g.Groups[j].Window == c.Window {
				g.Of[i] = j
			}
		}
		if g.Of[i] < 0 {
			g.Of[i] = len(g.Groups)
			g.Groups = append(g.Groups, PageGroup{Window: c.Window, Pages: o.Slots*c.slotPages(o) + o.Spare})
		}
	}
	return g
}

// pages is the number of pages that hold n positions from the start of a page on.
func pages(n int) int { return (n + PageSize - 1) / PageSize }

// Span is the most positions that the rows of one batch can need of a sequence: all
// of the context, or for a sliding window what the batch itself and the rows before
// it make.
func (c Cache) Span(o Options) int {
	if c.Window <= 0 {
		return o.Context
	}
	return min(o.Context, c.Window+o.MaxRows)
}

// slotPages is the most pages that one sequence can need of the cache: a span may
// begin in the middle of a page.
func (c Cache) slotPages(o Options) int {
	return min(pages(o.Context), pages(c.Span(o))+1)
}

// Entries is the length of Batch.Pages.
func (g *Paging) Entries() int { return len(g.Groups) * g.Slots * g.PerSlot }

// Table is the part of Batch.Pages that belongs to a slot in a group.
func (g *Paging) Table(pages []int32, group, slot int) []int32 {
	at := (group*g.Slots + slot) * g.PerSlot
	return pages[at : at+g.PerSlot : at+g.PerSlot]
}

// First is the first position that a row at position pos can see in a group.
func (g PageGroup) First(pos int) int {
	if g.Window <= 0 {
		return 0
	}
	return max(0, pos-g.Window+1)
}

// CheckPages reports the first row of a batch that can see or writes a position
// without a page. It allocates nothing.
func (b *Batch) CheckPages(g *Paging) error {
	if len(b.Pages) != g.Entries() {
		return fmt.Errorf("ops: batch: %d entries of page tables, want %d", len(b.Pages), g.Entries())
	}
	for from := 0; from < len(b.Slot); {
		to := from + 1
		for to < len(b.Slot) && b.Slot[to] == b.Slot[from] {
			to++
		}
		for i, group := range g.Groups {
			table := g.Table(b.Pages, i, int(b.Slot[from]))
			for page := group.First(int(b.Pos[from])) / PageSize; page <= int(b.Pos[to-1])/PageSize; page++ {
				if n := table[page]; n < 0 || int(n) >= group.Pages {
					return fmt.Errorf("ops: batch: row %d: position %d of slot %d is on page %d of %d in group %d",
						from, page*PageSize, b.Slot[from], n, group.Pages, i)
				}
			}
		}
		from = to
	}
	return nil
}

// CheckCopy reports page numbers that a group does not have.
func (g *Paging) CheckCopy(group, dst, src int) error {
	if group < 0 || group >= len(g.Groups) {
		return fmt.Errorf("ops: copy page: group %d of %d", group, len(g.Groups))
	}
	if n := g.Groups[group].Pages; dst < 0 || dst >= n || src < 0 || src >= n {
		return fmt.Errorf("ops: copy page: %d to %d of %d pages in group %d", src, dst, n, group)
	}
	return nil
}

// CacheBytes is the size of the pools of all KV caches: what a backend allocates for
// them.
func (p *Plan) CacheBytes(o Options) int64 {
	g := NewPaging(p, o)
	var n int64
	for i, c := range p.Caches {
		n += c.PageBytes(o.KV) * int64(g.Groups[g.Of[i]].Pages)
	}
	return n
}

// PageBytes is the size of one page of a cache.
func (c Cache) PageBytes(k KVType) int64 {
	return PageSize * int64(c.KVHeads) * int64(k.Bytes(c.KeyDim)+k.Bytes(c.ValueDim))
}

// StateBytes is the size of one sequence's recurrent state.
func (p *Plan) StateBytes() int64 {
	var n int64
	for _, s := range p.States {
		n += 4 * int64(s.Floats)
	}
	return n
}

// DeviceKVBytes is what a backend allocates for caches and recurrent state; the
// runtime's Memory says the same.
func (p *Plan) DeviceKVBytes(o Options) int64 {
	return p.CacheBytes(o) + p.StateBytes()*int64(o.Slots)
}

// KVBytes is the one function that computes the memory for sequences: the pools of
// pages and the recurrent state on the device, and on the host the page tables and
// the snapshots of recurrent state. Backends and gpu/kvcache allocate by it and
// forecasts use it.
func (p *Plan) KVBytes(o Options) int64 {
	return p.DeviceKVBytes(o) + 4*int64(NewPaging(p, o).Entries()) + p.SnapshotBytes(o)
}

// SnapshotBytes is the most that snapshots of recurrent state take: Options.Snapshots
// of finished beginnings, and one mark of each running sequence.
func (p *Plan) SnapshotBytes(o Options) int64 {
	return p.StateBytes() * int64(o.Snapshots+o.Slots)
}
