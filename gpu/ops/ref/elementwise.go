package ref

import "ganglion/gpu/ops"

// each calls f for every row of the views in and out.
func (p *Program) each(in, out ops.View, f func(row int, x, y []float32)) {
	for r := range p.count(in) {
		f(r, p.row(in, r), p.row(out, r))
	}
}

// binary is a + b or a · b, with b repeated over the columns of a.
func (p *Program) binary(o *ops.Binary) {
	p.each(o.A, o.Out, func(r int, a, y []float32) {
		b := p.row(o.B, r)
		for i := range a {
			if o.Kind == ops.MulKind {
				y[i] = a[i] * b[i%len(b)]
			} else {
				y[i] = a[i] + b[i%len(b)]
			}
		}
	})
}

// addVec is x + w or x · w, with w repeated over the columns.
func (p *Program) addVec(o *ops.AddVec) {
	w := p.rt.vector(o.W)
	p.each(o.In, o.Out, func(_ int, x, y []float32) {
		for i := range x {
			if o.Mul {
				y[i] = x[i] * w[i%len(w)]
			} else {
				y[i] = x[i] + w[i%len(w)]
			}
		}
	})
}

// scale is x·factor + offset within ±clamp.
func (p *Program) scale(o *ops.Scale) {
	p.each(o.In, o.Out, func(_ int, x, y []float32) {
		for i := range x {
			y[i] = float32(x[i]*o.Factor) + o.Offset
			if o.Clamp > 0 {
				y[i] = min(max(y[i], -o.Clamp), o.Clamp)
			}
		}
	})
}

// unary is act(x).
func (p *Program) unary(o *ops.Unary) {
	p.each(o.In, o.Out, func(_ int, x, y []float32) {
		for i := range x {
			y[i] = o.Act.Apply(x[i])
		}
	})
}

// glu is act(gate)·(up + offset), both limited first where a limit is set.
func (p *Program) glu(o *ops.GLU) {
	p.each(o.Gate, o.Out, func(r int, gate, y []float32) {
		up := p.row(o.Up, r)
		for i := range gate {
			g, u := gate[i], up[i]
			if o.Limit > 0 {
				g, u = min(g, o.Limit), min(max(u, -o.Limit), o.Limit)
			}
			if o.Alpha > 0 {
				g = float32(g * ops.SigmoidF(float32(o.Alpha*g)))
			} else {
				g = o.Act.Apply(g)
			}
			y[i] = g * (u + o.UpOffset)
		}
	})
}

// softcap is cap·tanh(x/cap).
func (p *Program) softcap(o *ops.Softcap) {
	inverse := 1 / o.Cap
	p.each(o.In, o.Out, func(_ int, x, y []float32) {
		for i := range x {
			y[i] = ops.TanhF(float32(x[i]*inverse)) * o.Cap
		}
	})
}

// posScale multiplies a row by the factor of its position.
func (p *Program) posScale(o *ops.PosScale) {
	p.each(o.In, o.Out, func(r int, x, y []float32) {
		f := o.At(int(p.batch.Pos[p.batchRow(o.In, r)]))
		for i := range x {
			y[i] = x[i] * f
		}
	})
}
