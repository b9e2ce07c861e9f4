package ref

import "ganglion/gpu/ops"

// matMul is out[r] = W·in[r] + Bias. Each row of W is widened once and multiplied
// with every row of the batch.
func (p *Program) matMul(o *ops.MatMul) {
	rows := p.count(o.In)
	bias := p.rt.vector(o.Bias)
	p.parallel(o.W.Rows, func(from, to int) {
		w := make([]float32, o.W.Cols)
		for c := from; c < to; c++ {
			p.rt.widenRow(o.W, c, w)
			for r := range rows {
				y := ops.Dot(w, p.row(o.In, r))
				if bias != nil {
					y += bias[c]
				}
				p.row(o.Out, r)[c] = y
			}
		}
	})
}
