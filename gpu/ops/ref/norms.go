package ref

import "ganglion/gpu/ops"

// groups calls f for every group of columns of every row; at is the first weight
// element of the group, for a weight of n elements.
func (p *Program) groups(in, out ops.View, group, n int, f func(x, y []float32, at int)) {
	if group <= 0 {
		group = in.Width
	}
	for r := range p.count(in) {
		x, y := p.row(in, r), p.row(out, r)
		for c := 0; c < in.Width; c += group {
			at := 0
			if n == in.Width {
				at = c
			}
			f(x[c:c+group], y[c:c+group], at)
		}
	}
}

// rmsNorm is x / √(mean(x²) + eps) · w.
func (p *Program) rmsNorm(o *ops.RMSNorm) {
	w := p.rt.vector(o.W)
	p.groups(o.In, o.Out, o.Group, len(w), func(x, y []float32, at int) {
		s := ops.Dot(x, x)
		r := ops.Rsqrt(float32(s*(1/float32(len(x)))) + o.Eps)
		for i := range x {
			y[i] = float32(x[i] * r)
			if w != nil {
				y[i] *= w[at+i]
			}
		}
	})
}

// layerNorm is (x − mean(x)) / √(var(x) + eps) · w + b.
func (p *Program) layerNorm(o *ops.LayerNorm) {
	w, b := p.rt.vector(o.W), p.rt.vector(o.Bias)
	p.groups(o.In, o.Out, o.Group, max(len(w), len(b)), func(x, y []float32, at int) {
		inverse := 1 / float32(len(x))
		mean := float32(ops.Sum(x) * inverse)
		for i := range x {
			y[i] = x[i] - mean
		}
		r := ops.Rsqrt(float32(ops.Dot(y, y)*inverse) + o.Eps)
		for i := range y {
			y[i] = float32(y[i] * r)
			if w != nil {
				y[i] = float32(y[i] * w[at%len(w)+i])
			}
			if b != nil {
				y[i] += b[at%len(b)+i]
			}
		}
	})
}

// l2Norm is x / √(Σx² + eps).
func (p *Program) l2Norm(o *ops.L2Norm) {
	p.groups(o.In, o.Out, o.Group, 0, func(x, y []float32, _ int) {
		r := ops.Rsqrt(ops.Dot(x, x) + o.Eps)
		for i := range x {
			y[i] = x[i] * r
		}
	})
}
