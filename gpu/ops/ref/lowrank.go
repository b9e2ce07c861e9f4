package ref

import "ganglion/gpu/ops"

// lowRank is Out += s·(B·(A·in)) for the rows that the adapter has a strength for.
func (p *Program) lowRank(o *ops.LowRank) {
	rank, topK := o.Rank(), o.TopK()
	outs := o.Out.Width / topK
	mid := make([]float32, rank)
	w := make([]float32, max(o.A.Cols, rank))
	for r := range p.count(o.Out) {
		s := p.strength(o, p.batchRow(o.Out, r))
		if s == 0 {
			continue
		}
		out := p.row(o.Out, r)
		for k := range topK {
			expert := 0
			if o.IDs.Width > 0 {
				expert = int(p.ids(o.IDs, r)[k])
			}
			p.lowRankMid(o, r, k, expert, w, mid)
			for c := range outs {
				p.rt.widenRow(o.B, expert*outs+c, w)
				out[k*outs+c] += float32(ops.Dot(w[:rank], mid) * s)
			}
		}
	}
}

// strength is what an update of a row of the batch is multiplied by; 0 for none.
func (p *Program) strength(o *ops.LowRank, row int) float32 {
	if p.batch.Scales == nil || (o.ByToken && p.batch.Tokens[row] < 0) {
		return 0
	}
	return p.batch.Scales[row*p.plan.Adapters+o.Adapter] * o.Factor
}

// lowRankMid is A·in, or A's row of the token. w is scratch.
func (p *Program) lowRankMid(o *ops.LowRank, r, k, expert int, w, mid []float32) {
	if o.ByToken {
		p.rt.widenRow(o.A, int(p.batch.Tokens[r]), mid)
		return
	}
	in := p.row(o.In, r)
	if len(in) != o.A.Cols {
		in = in[k*o.A.Cols : (k+1)*o.A.Cols]
	}
	for i := range mid {
		p.rt.widenRow(o.A, expert*len(mid)+i, w)
		mid[i] = ops.Dot(w[:o.A.Cols], in)
	}
}
