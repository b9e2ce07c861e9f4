package compute

import (
	"fmt"
	"math"
	"slices"

	"ganglion/gpu/ops"
)

// lseBlock is the number of ids in one block of the log-sum-exp.
const lseBlock = 1024

// headScratch is the memory behind one head of a result.
type headScratch struct {
	row    []float32
	ids    []int32
	logits []float32
	buf    []byte
}

// readHeads fills the result from the logits.
func (p *Program) readHeads(l *lowering, b *ops.Batch, res *ops.Result) error {
	for i, want := range b.Want {
		s := &p.heads[len(res.Heads)]
		if err := p.readRow(l, i, s); err != nil {
			return err
		}
		res.Heads = append(res.Heads, s.head(p.rt.plan.Name, len(res.Heads), want))
	}
	return nil
}

// readRow reads the logits of an output of the part that ran.
func (p *Program) readRow(l *lowering, i int, s *headScratch) error {
	o := l.operand(l.plan.Logits)
	n := 4 * l.plan.Logits.Width
	s.buf = slices.Grow(s.buf[:0], n)[:n]
	if err := o.mem.buf.Read(4*(int64(o.at)+int64(i)*int64(o.stride)), s.buf); err != nil {
		return err
	}
	p.stats.ReadBack += int64(n)
	s.row = takeFloats(s.row[:0], s.buf)
	return nil
}

// head computes a head from the whole row.
func (s *headScratch) head(plan string, output int, want ops.Want) ops.Head {
	row := s.row
	if id := slices.IndexFunc(row, notFinite); id >= 0 {
		return ops.Head{Err: fmt.Errorf("compute: %s: output %d: logit of token %d is %v", plan, output, id, row[id])}
	}
	head := ops.Head{}
	for id, x := range row {
		if x > row[head.Best] {
			head.Best = int32(id)
		}
	}
	head.Max = row[head.Best]
	head.LogSumExp = logSumExp(row, head.Max)
	switch want.Kind {
	case ops.WantTop:
		s.top(want.K)
		head.IDs, head.Logits = s.ids, s.logits
	case ops.WantRow:
		head.Row = row
	}
	return head
}

func notFinite(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

// logSumExp is ln Σ e^x over the row, in blocks of ids.
func logSumExp(row []float32, m float32) float32 {
	var e [lseBlock]float32
	sum := float32(0)
	for block := range slices.Chunk(row, lseBlock) {
		for i, x := range block {
			e[i] = ops.Exp(x - m)
		}
		sum += ops.Sum(e[:len(block)])
	}
	return m + ops.Ln(sum)
}

// top lists the k largest logits, best first, equals by ascending id.
func (s *headScratch) top(k int) {
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
