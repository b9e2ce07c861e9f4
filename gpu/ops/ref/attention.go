package ref

import (
	"math"
	"slices"

	"ganglion/gpu/ops"
)

// attention lets every row attend to the positions of its own sequence. Rows of
// one sequence stand together, so its keys and values are widened once.
func (p *Program) attention(o *ops.Attention) {
	rows := p.count(o.Q)
	for from := 0; from < rows; {
		to := from + 1
		for to < rows && p.slotOf(o.Q, to) == p.slotOf(o.Q, from) {
			to++
		}
		p.attendSequence(o, from, to)
		from = to
	}
}

func (p *Program) slotOf(v ops.View, i int) int32 { return p.batch.Slot[p.batchRow(v, i)] }
func (p *Program) posOf(v ops.View, i int) int    { return int(p.batch.Pos[p.batchRow(v, i)]) }

// sees is the range [lo, hi) of positions that row i of a view attends to.
func (p *Program) sees(o *ops.Attention, i int) (lo, hi int) {
	return o.Sees(p.posOf(o.Q, i), p.batch.SpanOf(p.batchRow(o.Q, i), o.Span))
}

// attendSequence computes the rows [from, to), which belong to one slot.
func (p *Program) attendSequence(o *ops.Attention, from, to int) {
	c := p.rt.caches[o.Cache]
	first, end := p.sees(o, from)
	for i := from + 1; i < to; i++ {
		lo, hi := p.sees(o, i)
		first, end = min(first, lo), max(end, hi)
	}
	for pos := first; pos < end; pos++ {
		cell := p.cell(c, p.slotOf(o.Q, from), int32(pos))
		c.keys.get(cell, p.keys[(pos-first)*c.keys.width():])
		c.values.get(cell, p.values[(pos-first)*c.values.width():])
	}
	kvHeads := p.plan.Caches[o.Cache].KVHeads
	h := headAttention{
		op: o, first: first, half: p.rt.opts.KV == ops.KVF16,
		keys: p.keys, keyWidth: c.keys.width(), keyDim: c.keys.dim,
		values: p.values, valueWidth: c.values.width(), valueDim: c.values.dim,
	}
	sinks := p.rt.vector(o.Sinks)
	slopes := ops.ALiBiSlopes(o.Heads, o.ALiBi)
	p.parallel((to-from)*o.Heads, func(lo, hi int) {
		for i := lo; i < hi && !p.batch.Stop.Stopped(); i++ {
			row, head := from+i/o.Heads, i%o.Heads
			h := h
			h.kvHead = head / (o.Heads / kvHeads)
			h.sink = float32(math.Inf(-1))
			if sinks != nil {
				h.sink = sinks[head]
			}
			if slopes != nil {
				h.slope = slopes[head]
			}
			q := slices.Clone(p.row(o.Q, row)[head*h.keyDim : (head+1)*h.keyDim])
			h.round(q)
			out := p.row(o.Out, row)[head*h.valueDim : (head+1)*h.valueDim]
			lo, hi := p.sees(o, row)
			h.attend(q, out, p.posOf(o.Q, row), lo, hi)
		}
	})
}

// headAttention is what one query head needs to attend.
type headAttention struct {
	op     *ops.Attention
	kvHead int
	slope  float32 // ALiBi, 0 = none
	sink   float32 // −∞ = none

	half bool // the cache holds halves

	first                int       // position of row 0 of keys and values
	keys, values         []float32 // [positions, width]
	keyWidth, valueWidth int
	keyDim, valueDim     int
}

// chunk is what one chunk of positions knows before the others: the positions [from,
// to), the largest score, the exponentials of the scores relative to it and their sum.
type chunk struct {
	from, to int
	max, sum float32
	exps     []float32
}

// attend computes one head of one row at position pos over the positions [lo, hi): the exponentials by chunks of
// ops.KVChunk positions anchored at position 0, what is common to all of them, then the
// values by chunks.
func (h *headAttention) attend(q, out []float32, pos, lo, hi int) {
	var chunks []chunk
	m := h.sink
	for from := lo; from < hi; {
		to := min(hi, (from/ops.KVChunk+1)*ops.KVChunk)
		c := h.chunk(q, from, to, pos)
		m = max(m, c.max)
		chunks = append(chunks, c)
		from = to
	}
	sum := float32(0)
	for _, c := range chunks {
		sum += float32(c.sum * ops.Exp(c.max-m))
	}
	if !math.IsInf(float64(h.sink), -1) {
		sum += ops.Exp(h.sink - m)
	}
	r := ops.Recip(sum)
	clear(out)
	for _, c := range chunks {
		h.average(c, float32(ops.Exp(c.max-m)*r), out)
	}
}

// chunk takes the scores of the positions [from, to) of one chunk.
func (h *headAttention) chunk(q []float32, from, to, pos int) chunk {
	c := chunk{from: from, to: to, max: float32(math.Inf(-1)), exps: make([]float32, to-from)}
	for j := range c.exps {
		c.exps[j] = h.score(q, from+j, pos)
		c.max = max(c.max, c.exps[j])
	}
	var lanes [ops.Lanes]float32
	for j, s := range c.exps {
		c.exps[j] = ops.Exp(s - c.max)
		lanes[(from+j)%ops.Lanes] += c.exps[j]
	}
	c.sum = ops.FoldLanes(&lanes)
	return c
}

// average adds the values of one chunk to out, weighed by their probabilities, which are
// the chunk's exponentials times its weight.
func (h *headAttention) average(c chunk, weight float32, out []float32) {
	for j := range c.exps {
		c.exps[j] *= weight
	}
	h.round(c.exps)
	acc := make([]float32, len(out))
	for j, p := range c.exps {
		v := h.values[(c.from+j-h.first)*h.valueWidth+h.kvHead*h.valueDim:]
		for d := range acc {
			acc[d] += float32(p * v[d])
		}
	}
	for d := range out {
		out[d] += acc[d]
	}
}

// round rounds queries and probabilities as the cache rounds what they meet there.
func (h *headAttention) round(x []float32) {
	for i := range x {
		if h.half {
			x[i] = ops.RoundHalf(x[i])
		}
	}
}

// score is q·k_j·scale with softcap and ALiBi.
func (h *headAttention) score(q []float32, j, pos int) float32 {
	k := h.keys[(j-h.first)*h.keyWidth+h.kvHead*h.keyDim:]
	s := float32(ops.Dot(q, k) * h.op.Scale)
	if h.op.Softcap > 0 {
		s = float32(ops.TanhF(float32(s*(1/h.op.Softcap))) * h.op.Softcap)
	}
	if h.slope != 0 {
		s += float32(h.slope * float32(j-pos))
	}
	return s
}
