package ops

// Layout is where a plan's activation buffers lie in two arenas, one for per-row
// and one for per-output buffers. Buffers whose lifetimes do not overlap share
// space. A backend with room for R rows places buffer b at element Offset[b]·R of
// its arena, as [R, Width].
type Layout struct {
	Offset   []int // elements per row, by buffer
	RowWidth int   // elements per row of the per-row arena
	OutWidth int   // elements per output of the per-output arena
}

// NewLayout places the buffers of a valid plan by first fit in order of first
// write. The logits buffer lives to the end.
func NewLayout(p *Plan) Layout {
	first, last := lifetimes(p)
	l := Layout{Offset: make([]int, len(p.Buffers))}
	var live []Buf
	for i := range p.Ops {
		kept := live[:0]
		for _, b := range live {
			if last[b] >= i {
				kept = append(kept, b)
			}
		}
		live = kept
		for b := range p.Buffers {
			if first[b] == i {
				l.place(p, Buf(b), live)
				live = append(live, Buf(b))
			}
		}
	}
	return l
}

// ScratchBytes is what a backend may need for activations in batches of o.MaxRows rows
// and outs outputs: a forecast, not what is allocated.
func (p *Plan) ScratchBytes(o Options, outs int) int64 {
	l := NewLayout(p)
	return 4*(int64(l.RowWidth+p.LowRankWidth())*int64(o.MaxRows)+int64(l.OutWidth)*int64(outs)) + p.PartialBytes(o)
}

// lifetimes gives the first write and the last use of each buffer by operation.
func lifetimes(p *Plan) (first, last []int) {
	first = make([]int, len(p.Buffers))
	last = make([]int, len(p.Buffers))
	for b := range first {
		first[b], last[b] = -1, -1
	}
	for i, op := range p.Ops {
		for _, v := range op.Writes() {
			if first[v.Buf] < 0 {
				first[v.Buf] = i
			}
			last[v.Buf] = i
		}
		for _, v := range op.Reads() {
			last[v.Buf] = i
		}
	}
	last[p.Logits.Buf] = len(p.Ops)
	return first, last
}

// place finds the lowest offset at which b does not overlap a live buffer.
func (l *Layout) place(p *Plan, b Buf, live []Buf) {
	want := p.Buffers[b]
	off := 0
	for moved := true; moved; {
		moved = false
		for _, o := range live {
			other := p.Buffers[o]
			if other.Rows == want.Rows && off < l.Offset[o]+other.Width && l.Offset[o] < off+want.Width {
				off, moved = l.Offset[o]+other.Width, true
			}
		}
	}
	l.Offset[b] = off
	if want.Rows == PerRow {
		l.RowWidth = max(l.RowWidth, off+want.Width)
	} else {
		l.OutWidth = max(l.OutWidth, off+want.Width)
	}
}
