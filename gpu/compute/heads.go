package compute

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"ganglion/gpu/ops"
	"ganglion/plugins/rowstats"
)

// The heads of a run: what is read back of each output row. The best token, its logit
// and the log-sum-exp are computed on the device for every output and read in one piece
// of 16 bytes each; the best K tokens are chosen there where an output wants them and K
// is at most topMost; of statistics the device makes 64 sums where an output wants them;
// whole rows, and rows for a larger K, are read as they are. Renderers give rows in place
// of best tokens and sums: see apart.

const (
	headEntry   = 16                      // of one output: best, bits of its logit, bits of the log-sum-exp, bad id
	headBlock   = 1024                    // logits of a workgroup: a block of rule 9 of gpu/DESIGN.md
	headsWG     = 32                      // blocks of a workgroup where texels are fetched, WG of heads_max_texels
	statsBlocks = 64 / rowstats.LaneCount // blocks of a workgroup of heads_stats
	topMost     = 256                     // most tokens that the device chooses
	topSegment  = 4096                    // logits that a workgroup chooses from

	statsLanes = 4 * rowstats.LaneCount // sums of the statistics of a block
	statsBytes = 8 * (statsLanes + 1)   // of an output: what each of them is and what it lost, and the pivot
	moreBytes  = statsBytes + 8*topMost // of an output: statistics, then the best tokens
)

// readBest appends the dispatches that compute the best token and the log-sum-exp of
// every output.
func (l *lowering) readBest() error {
	v := l.plan.Logits
	o, outs := l.operand(v), l.shape.Outs
	blocks := (v.Width + headBlock - 1) / headBlock
	part := l.scratch(int64(16 * outs * blocks))
	l.want(l.rt.heads, l.headsBytes())
	heads := l.headsBuffer()
	logits, parts := l.views(v), regions(part)
	form, groups := "", blocks
	if o.at%4 == 0 && o.stride%4 == 0 && l.fetches(o.bytes()) { // an invocation has a block
		form, groups = "_texels", (blocks+headsWG-1)/headsWG
	}
	for _, d := range []dispatch{
		{kernel: "heads_max" + form, bind: []region{l.batchBuffer(), o.region, part}, groups: [3]int{groups, outs},
			params: params{}.view(o).i32(v.Width, blocks), reads: logits, writes: parts},
		{kernel: "heads_sum" + form, bind: []region{l.batchBuffer(), o.region, part}, groups: [3]int{groups, outs},
			params: params{}.view(o).i32(v.Width, blocks), reads: append(slices.Clone(parts), logits...), writes: parts},
		{kernel: "heads_join", bind: []region{l.batchBuffer(), o.region, part, heads}, groups: [3]int{1, outs},
			params: params{}.view(o).i32(blocks), reads: append(slices.Clone(parts), logits...), writes: regions(heads)},
	} {
		if err := l.dispatch(d); err != nil {
			return err
		}
	}
	return nil
}

// readTop appends the dispatches that choose the best tokens of the outputs that want
// some. They are a list of their own, submitted only for batches with such outputs.
func (l *lowering) readTop() error {
	v := l.plan.Logits
	o, outs := l.operand(v), l.shape.Outs
	segments := (v.Width + topSegment - 1) / topSegment
	part := l.scratch(int64(8 * topMost * outs * segments))
	heads := l.headsBuffer()
	logits, parts := l.views(v), regions(part)
	at := params{}.view(o).i32(v.Width, segments).u32(l.batch.wants)
	if err := l.dispatch(dispatch{kernel: "heads_top", bind: []region{l.batchBuffer(), o.region, part},
		groups: [3]int{segments, outs}, params: at, reads: logits, writes: parts}); err != nil {
		return err
	}
	return l.dispatch(dispatch{kernel: "heads_top_join", bind: []region{l.batchBuffer(), o.region, part, heads},
		groups: [3]int{1, outs}, params: at.i32(l.topAt(0)/4, moreBytes/4), reads: append(parts, logits...), writes: regions(heads)})
}

// readStats appends the dispatches that make the sums of the statistics of the outputs that
// want them, behind those of readBest. They are a list of their own as well.
func (l *lowering) readStats() error {
	v := l.plan.Logits
	o, outs := l.operand(v), l.shape.Outs
	blocks := (v.Width + rowstats.Block - 1) / rowstats.Block
	part := l.scratch(4 * (statsLanes*int64(outs)*int64(blocks) + int64(outs)))
	heads := l.headsBuffer()
	logits, parts := l.views(v), regions(part)
	samples, step := rowstats.Samples(v.Width)
	if err := l.dispatch(dispatch{kernel: "heads_stats", bind: []region{l.batchBuffer(), o.region, heads, part},
		groups: [3]int{(blocks + statsBlocks - 1) / statsBlocks, outs},
		params: params{}.view(o).i32(v.Width, blocks, outs).u32(l.batch.stats).i32(samples, step).f32(1 / float32(samples)),
		reads:  append(regions(heads), logits...), writes: parts}); err != nil {
		return err
	}
	return l.dispatch(dispatch{kernel: "heads_stats_join", bind: []region{l.batchBuffer(), part, heads},
		groups: [3]int{1, outs}, params: params{}.i32(blocks, outs).u32(l.batch.stats).i32(l.statsAt(0)/4, moreBytes/4, 0),
		reads: parts, writes: regions(heads)})
}

// statsAt is the byte of the heads at which the sums of an output's statistics begin: of
// logit − pivot, its square, weights, weighted distances, by lane each.
func (l *lowering) statsAt(output int) int { return headEntry*l.shape.Outs + moreBytes*output }

// topAt is the byte of the heads at which the best tokens of an output begin, behind its
// statistics: pairs of an id and the bits of its logit.
func (l *lowering) topAt(output int) int { return l.statsAt(output) + statsBytes }

func (l *lowering) headsBytes() int64 { return int64(l.statsAt(l.shape.Outs)) }

func (l *lowering) headsBuffer() region { return region{mem: l.rt.heads, size: l.headsBytes()} }

// onDevice tells whether the device chooses the best tokens that an output wants.
func onDevice(w ops.Want) bool { return w.Kind == ops.WantTop && w.K <= topMost }

// headScratch is the memory behind one head of a result.
type headScratch struct {
	row    []float32
	ids    []int32
	logits []float32
}

// readHeads fills the result from what the device left of a part of a batch.
func (p *Program) readHeads(l *lowering, b *ops.Batch, res *ops.Result) error {
	if len(b.Outs) == 0 {
		return nil
	}
	buf, err := p.read(l.rt.heads, 0, headEntry*len(b.Outs))
	if err != nil {
		return err
	}
	from := len(res.Heads)
	for i := range b.Outs {
		word := func(n int) uint32 { return binary.LittleEndian.Uint32(buf[headEntry*i+4*n:]) }
		h := ops.Head{Best: int32(word(0)), Max: math.Float32frombits(word(1)), LogSumExp: math.Float32frombits(word(2))}
		if bad := int32(word(3)); bad >= 0 {
			h = ops.Head{Err: fmt.Errorf("compute: %s: output %d: logit of token %d is not finite", l.plan.Name, from+i, bad)}
		}
		res.Heads = append(res.Heads, h)
	}
	for i, want := range b.Want {
		if err := p.readMore(l, i, want, &p.heads[from+i], &res.Heads[from+i]); err != nil {
			return err
		}
	}
	return nil
}

// apart tells what the device computes of an output beside its best token, in lists apart.
// A renderer does not: its memory is the host's, which takes 3 ms for the best 256 of
// 262,144 logits and statistics where the kernels take 65.
func (b *Backend) apart(w ops.Want) (top, stats bool) {
	if b.dev.Info().Software {
		return false, false
	}
	return onDevice(w), w.Stats
}

// readMore reads what output i of a part wants beyond the best token.
func (p *Program) readMore(l *lowering, i int, want ops.Want, s *headScratch, h *ops.Head) error {
	if h.Err != nil {
		return nil
	}
	top, stats := l.rt.b.apart(want)
	if err := p.readApart(l, i, want, top, stats, s, h); err != nil {
		return err
	}
	if (want.Kind == ops.WantBest || top) && stats == want.Stats {
		return nil
	}
	o := l.operand(l.plan.Logits)
	buf, err := p.read(o.mem, 4*(int(o.at)+i*int(o.stride)), 4*l.plan.Logits.Width)
	if err != nil {
		return err
	}
	s.row = takeFloats(s.row[:0], buf)
	if want.Stats && !stats {
		h.Stats = rowstats.Of(s.row)
	}
	switch {
	case want.Kind == ops.WantRow:
		h.Row = s.row
	case want.Kind == ops.WantTop && !top:
		s.top(want.K)
		h.IDs, h.Logits = s.ids, s.logits
	}
	return nil
}

// readApart reads the best tokens and the statistics of an output that the device left.
func (p *Program) readApart(l *lowering, i int, want ops.Want, top, stats bool, s *headScratch, h *ops.Head) error {
	at, end := l.topAt(i), l.topAt(i)
	if stats {
		at = l.statsAt(i)
	}
	if top {
		end += 8 * want.K
	}
	if at == end {
		return nil
	}
	buf, err := p.read(l.rt.heads, at, end-at)
	if err != nil {
		return err
	}
	if stats {
		h.Stats = describe(buf[:statsBytes], h.Max, l.plan.Logits.Width)
		buf = buf[statsBytes:]
	}
	if !top {
		return nil
	}
	s.ids, s.logits = s.ids[:0], s.logits[:0]
	for ; len(buf) > 0; buf = buf[8:] {
		s.ids = append(s.ids, int32(binary.LittleEndian.Uint32(buf)))
		s.logits = append(s.logits, math.Float32frombits(binary.LittleEndian.Uint32(buf[4:])))
	}
	h.IDs, h.Logits = s.ids, s.logits
	return nil
}

// describe makes statistics of the sums that the device left of a row of n logits whose
// largest is known.
func describe(buf []byte, largest float32, n int) rowstats.Stats {
	word := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(buf[4*i:])) }
	var sums [statsLanes / rowstats.LaneCount]rowstats.Lanes
	for i := range statsLanes {
		l, k := &sums[i/rowstats.LaneCount], i%rowstats.LaneCount
		l.High[k], l.Low[k] = word(2*i), word(2*i+1)
	}
	m := rowstats.Moments{Count: n, Largest: largest, First: sums[0].Sum(), Second: sums[1].Sum()}
	return rowstats.Describe(word(2*statsLanes), &m, func() rowstats.Mass { return rowstats.MassOf(&sums[2], &sums[3]) })
}

// read reads bytes of a memory; they are valid until the next call.
func (p *Program) read(m *memory, at, n int) ([]byte, error) {
	p.back = slices.Grow(p.back[:0], n)[:n]
	p.stats.ReadBack += int64(n)
	return p.back, m.buf.Read(int64(at), p.back)
}

// top lists the k largest logits of the row, best first, equals by ascending id. It keeps a
// sorted list, which most logits do not come into.
func (s *headScratch) top(k int) {
	if k > keptMost {
		s.sorted(k)
		return
	}
	s.ids, s.logits = s.ids[:0], s.logits[:0]
	for id, x := range s.row {
		if len(s.ids) == k {
			if x <= s.logits[k-1] {
				continue
			}
			s.ids, s.logits = s.ids[:k-1], s.logits[:k-1]
		}
		at, _ := slices.BinarySearchFunc(s.logits, x, func(a, x float32) int {
			if a >= x {
				return -1 // equals stand before it
			}
			return 1
		})
		s.ids, s.logits = slices.Insert(s.ids, at, int32(id)), slices.Insert(s.logits, at, x)
	}
}

// keptMost is the longest list that top keeps sorted.
const keptMost = 1024

// sorted is top by sorting the whole row.
func (s *headScratch) sorted(k int) {
	order := make([]int32, len(s.row))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch x, y := s.row[a], s.row[b]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	s.ids, s.logits = append(s.ids[:0], order[:k]...), s.logits[:0]
	for _, id := range s.ids {
		s.logits = append(s.logits, s.row[id])
	}
}
