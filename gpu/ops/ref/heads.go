package ref

import (
	"fmt"
	"math"
	"slices"

	"ganglion/gpu/ops"
	"ganglion/plugins/rowstats"
)

// lseBlock is the number of ids in one block of the log-sum-exp.
const lseBlock = 1024

// headScratch is the memory behind one head of a result.
type headScratch struct {
	ids    []int32
	logits []float32
}

// readHeads fills the result from the logits.
func (p *Program) readHeads(r *ops.Result) {
	r.Heads = r.Heads[:0]
	for i, want := range p.batch.Want {
		row := p.row(p.plan.Logits, i)
		if id := slices.IndexFunc(row, notFinite); id >= 0 {
			err := fmt.Errorf("ops/ref: %s: output %d: logit of token %d is %v", p.plan.Name, i, id, row[id])
			r.Heads = append(r.Heads, ops.Head{Err: err})
			continue
		}
		head := ops.Head{Best: best(row)}
		head.Max = row[head.Best]
		head.LogSumExp = logSumExp(row, head.Max)
		if want.Stats {
			head.Stats = rowstats.Of(row)
		}
		switch want.Kind {
		case ops.WantTop:
			head.IDs, head.Logits = p.heads[i].top(row, want.K)
		case ops.WantRow:
			head.Row = row
		}
		r.Heads = append(r.Heads, head)
	}
}

func notFinite(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

// best is the index of the largest logit, the lowest one of equals.
func best(row []float32) int32 {
	b := 0
	for id, x := range row {
		if x > row[b] {
			b = id
		}
	}
	return int32(b)
}

// logSumExp is ln Σ e^x over the row, in blocks of ids.
func logSumExp(row []float32, m float32) float32 {
	sum := float32(0)
	for block := range slices.Chunk(row, lseBlock) {
		e := make([]float32, len(block))
		for i, x := range block {
			e[i] = ops.Exp(x - m)
		}
		sum += ops.Sum(e)
	}
	return m + ops.Ln(sum)
}

// top lists the k largest logits, best first, equals by ascending id. It keeps a
// sorted list and inserts what beats its end.
func (s *headScratch) top(row []float32, k int) ([]int32, []float32) {
	s.ids, s.logits = s.ids[:0], s.logits[:0]
	for id, x := range row {
		if len(s.ids) == k && x <= s.logits[k-1] {
			continue
		}
		at := len(s.logits)
		for at > 0 && x > s.logits[at-1] {
			at--
		}
		s.ids = slices.Insert(s.ids, at, int32(id))
		s.logits = slices.Insert(s.logits, at, x)
		if len(s.ids) > k {
			s.ids, s.logits = s.ids[:k], s.logits[:k]
		}
	}
	return s.ids, s.logits
}
