package phase

import (
	"fmt"

	"ganglion/gpu/ops"
)

// cells tells which cells of a page each side has: cell c is bit c. What a sequence has
// not written yet may be anything.
type cells [2]uint64

// states tells which sides have the recurrent state of a slot. One of them always does,
// but after a call that failed, which ends with a reset of the slot.
type states [2]bool

// side is one that has the state.
func (s states) side() Phase {
	if s[Prompt] && !s[Decode] {
		return Prompt
	}
	return Decode
}

// carry is what carrying needs.
type carry struct {
	page, own []byte
	state     []float32
	pages     int // carried so far
}

// run is the rows of one sequence in a batch.
type run struct {
	slot, from, to int   // rows of the batch
	first, last    int32 // positions
}

// nextRun is the run that begins at a row.
func nextRun(b *ops.Batch, from int) run {
	to := from + 1
	for to < len(b.Slot) && b.Slot[to] == b.Slot[from] {
		to++
	}
	return run{int(b.Slot[from]), from, to, b.Pos[from], b.Pos[to-1]}
}

// bits are the cells [from, to) of a page.
func bits(from, to int) uint64 {
	if to-from >= ops.PageSize {
		return ^uint64(0)
	}
	return (uint64(1)<<(to-from) - 1) << from
}

// onPage is which cells of page i positions [from, to) are.
func onPage(i, from, to int) uint64 {
	at := i * ops.PageSize
	return bits(max(from-at, 0), min(to-at, ops.PageSize))
}

// bring carries to a side what a run looks back on and the side does not have.
func (r *Runtime) bring(to Phase, b *ops.Batch, q run) error {
	if len(r.plan.States) > 0 && q.first > 0 && !r.states[q.slot][to] {
		if err := r.carryState(to, q.slot); err != nil {
			return err
		}
	}
	for g, group := range r.paging.Groups {
		table := r.paging.Table(b.Pages, g, q.slot)
		for pos := group.First(int(q.first)); pos < int(q.first); pos = (pos/ops.PageSize + 1) * ops.PageSize {
			page := table[pos/ops.PageSize]
			need := onPage(pos/ops.PageSize, pos, int(q.first))
			if missing := need &^ r.held[g][page][to]; missing != 0 {
				if err := r.carryPage(to, g, int(page), missing); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// carryPage carries a page to a side that lacks some cells of it; cells that it alone has
// stay its own.
func (r *Runtime) carryPage(to Phase, group, page int, missing uint64) error {
	held := &r.held[group][page]
	from := 1 - to
	if lost := missing &^ held[from]; lost != 0 {
		return fmt.Errorf("phase: page %d of group %d: no side has cells %#x", page, group, lost)
	}
	there, here := r.sides[from], r.sides[to]
	var err error
	if r.carry.page, err = there.pages.ReadPage(group, page, r.carry.page); err != nil {
		return there.failed("read page", err)
	}
	if own := held[to] &^ held[from]; own != 0 {
		if r.carry.own, err = here.pages.ReadPage(group, page, r.carry.own); err != nil {
			return here.failed("read page", err)
		}
		parts, _ := r.paging.Parts(r.plan, r.opts.KV, group)
		ops.MergeCells(parts, r.carry.page, r.carry.own, own)
	}
	if err := here.pages.WritePage(group, page, r.carry.page); err != nil {
		return here.failed("write page", err)
	}
	held[to] |= held[from]
	r.carry.pages++
	return nil
}

func (r *Runtime) carryState(to Phase, slot int) error {
	there, here := r.sides[1-to], r.sides[to]
	var err error
	if r.carry.state, err = there.rt.SaveState(slot, r.carry.state); err != nil {
		return there.failed("save state", err)
	}
	if err := here.rt.LoadState(slot, r.carry.state); err != nil {
		return here.failed("load state", err)
	}
	r.states[slot][to] = true
	return nil
}

// write says that a run's cells and state are being written, and are in doubt on both
// sides until wrote says that they are on one.
func (r *Runtime) write(b *ops.Batch, q run) {
	r.mark(b, q, func(held *cells, at uint64) { held[Prompt] &^= at; held[Decode] &^= at })
	r.states[q.slot] = states{}
}

func (r *Runtime) wrote(on Phase, b *ops.Batch, q run) {
	r.mark(b, q, func(held *cells, at uint64) { held[on] |= at })
	r.states[q.slot][on] = true
}

func (r *Runtime) mark(b *ops.Batch, q run, f func(held *cells, at uint64)) {
	for g := range r.paging.Groups {
		table := r.paging.Table(b.Pages, g, q.slot)
		for i := int(q.first) / ops.PageSize; i <= int(q.last)/ops.PageSize; i++ {
			f(&r.held[g][table[i]], onPage(i, int(q.first), int(q.last)+1))
		}
	}
}

// ReadPage copies a page of every cache of a group: all cells that either side has.
func (r *Runtime) ReadPage(group, page int, into []byte) ([]byte, error) {
	if err := r.checkPage(group, page); err != nil {
		return nil, err
	}
	held := r.held[group][page]
	if missing := held[Prompt] &^ held[Decode]; missing != 0 {
		if err := r.carryPage(Decode, group, page, missing); err != nil {
			return nil, err
		}
	}
	s := r.sides[Decode]
	out, err := s.pages.ReadPage(group, page, into)
	if err != nil {
		return nil, s.failed("read page", err)
	}
	return out, nil
}

// WritePage puts a page in place on the side that decodes.
func (r *Runtime) WritePage(group, page int, data []byte) error {
	if err := r.checkPage(group, page); err != nil {
		return err
	}
	s := r.sides[Decode]
	if err := s.pages.WritePage(group, page, data); err != nil {
		return s.failed("write page", err)
	}
	r.held[group][page] = cells{Decode: ^uint64(0)}
	return nil
}

func (r *Runtime) checkPage(group, page int) error {
	if err := r.usable("carry page"); err != nil {
		return err
	}
	return r.paging.CheckCopy(group, page, page)
}
