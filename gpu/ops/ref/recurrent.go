package ref

import "ganglion/gpu/ops"

// recur calls f for the rows of the batch in ascending order with the state of
// their slot; a row at position 0 starts from zeros.
func (p *Program) recur(state int, f func(row int, s []float32)) {
	for r, slot := range p.batch.Slot {
		s := p.rt.state(state, int(slot))
		if p.batch.Pos[r] == 0 {
			clear(s)
		}
		f(r, s)
	}
}

// shortConv is a causal depthwise convolution over time. The state holds the last
// K−1 inputs: [K−1, channels], oldest first.
func (p *Program) shortConv(o *ops.ShortConv) {
	w, bias := p.rt.vector(o.W), p.rt.vector(o.Bias) // w: [channels, K]
	k := o.W.Cols
	p.recur(o.State, func(r int, s []float32) {
		x, y := p.row(o.In, r), p.row(o.Out, r)
		channels := len(x)
		for c := range channels {
			sum := float32(0)
			for j := range k - 1 {
				sum += float32(w[c*k+j] * s[j*channels+c])
			}
			sum += float32(w[c*k+k-1] * x[c])
			if bias != nil {
				sum += bias[c]
			}
			y[c] = o.Act.Apply(sum)
		}
		s = append(s[:0], s[min(channels, len(s)):]...)
		if k > 1 {
			_ = append(s, x...)
		}
	})
}

// mamba1 is h = exp(dt·A)·h + B·(dt·x), y = C·h + D·x, per channel. The state is
// [channels, N].
func (p *Program) mamba1(o *ops.Mamba1) {
	a, d := p.rt.vector(o.A), p.rt.vector(o.D) // a: [channels, N]
	p.recur(o.State, func(r int, s []float32) {
		x, dt, y := p.row(o.X, r), p.row(o.Dt, r), p.row(o.Out, r)
		b, c := p.row(o.B, r), p.row(o.C, r)
		for ch := range x {
			h := s[ch*o.N : (ch+1)*o.N]
			u := float32(dt[ch] * x[ch])
			for n := range h {
				decay := ops.Exp(float32(dt[ch] * a[ch*o.N+n]))
				h[n] = float32(decay*h[n]) + float32(b[n]*u)
			}
			y[ch] = ops.Dot(h, c) + float32(d[ch]*x[ch])
		}
	})
}

// mamba2 is M = exp(dt·A)·M + (dt·x)·Bᵀ, y = M·C + D·x, per head. The state is
// [heads, P, N].
func (p *Program) mamba2(o *ops.Mamba2) {
	a, d := p.rt.vector(o.A), p.rt.vector(o.D)
	width := o.X.Width / o.Heads // P
	p.recur(o.State, func(r int, s []float32) {
		x, dt, y := p.row(o.X, r), p.row(o.Dt, r), p.row(o.Out, r)
		for h := range o.Heads {
			g := h / (o.Heads / o.Groups)
			b, c := p.row(o.B, r)[g*o.N:(g+1)*o.N], p.row(o.C, r)[g*o.N:(g+1)*o.N]
			decay := ops.Exp(float32(dt[h] * a[h]))
			for i := h * width; i < (h+1)*width; i++ {
				m := s[i*o.N : (i+1)*o.N]
				u := float32(dt[h] * x[i])
				for n := range m {
					m[n] = float32(decay*m[n]) + float32(b[n]*u)
				}
				y[i] = ops.Dot(m, c) + float32(d[h]*x[i])
			}
		}
	})
}

// gatedDelta is M = e^g·M, δ = β(v − Mᵀk), M += k·δᵀ, o = Mᵀq·scale, per value
// head. The state holds Mᵀ: [VHeads, value, key].
func (p *Program) gatedDelta(o *ops.GatedDelta) {
	n := o.Dim
	p.recur(o.State, func(r int, s []float32) {
		for h := range o.VHeads {
			kh := h % o.KHeads
			q, k := p.row(o.Q, r)[kh*n:(kh+1)*n], p.row(o.K, r)[kh*n:(kh+1)*n]
			v, y := p.row(o.V, r)[h*n:(h+1)*n], p.row(o.Out, r)[h*n:(h+1)*n]
			decay, beta := ops.Exp(p.row(o.Gate, r)[h]), p.row(o.Beta, r)[h]
			for j := range n {
				m := s[(h*n+j)*n : (h*n+j+1)*n]
				for i := range m {
					m[i] *= decay
				}
				delta := float32(beta * (v[j] - ops.Dot(m, k)))
				for i := range m {
					m[i] += float32(k[i] * delta)
				}
				y[j] = float32(ops.Dot(m, q) * o.Scale)
			}
		}
	})
}
