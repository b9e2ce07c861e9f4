package opstest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"ganglion/gpu/ops"
)

// recurrentSeqs are long enough for a wrong carry from batch to batch to show.
var recurrentSeqs = []int{33, 9, 1}

func recurrentCases() []testCase {
	var cases []testCase
	for _, s := range [][2]int{{4, 37}, {3, 64}, {2, 5}, {1, 8}} {
		cases = append(cases, shortConvCase(s[0], s[1], ops.SiLU, true), shortConvCase(s[0], s[1], ops.Identity, false))
	}
	cases = append(cases, mamba1Case(16, 24), mamba1Case(1, 7), mamba1Case(37, 3))
	cases = append(cases, mamba2Case(4, 2, 8, 16), mamba2Case(3, 1, 5, 33), mamba2Case(6, 6, 1, 1))
	return append(cases, gatedDeltaCase(2, 4, 16), gatedDeltaCase(1, 3, 33), gatedDeltaCase(2, 2, 64), gatedDeltaCase(1, 1, 1))
}

func shortConvCase(k, channels int, act ops.Act, withBias bool) testCase {
	name := fmt.Sprintf("shortconv/%dx%d/act%d/bias=%v", channels, k, act, withBias)
	r := random(name + "/weights")
	w := normal(r, "w", k, channels, 1)
	var bias *ops.Weight
	if withBias {
		bias = normal(r, "bias", channels, 1, 1)
	}
	return testCase{
		name: name, ins: []input{{width: channels}}, out: channels, seqs: recurrentSeqs,
		tol: tolerance{(float64(k) + 2 + functionRoundings) * unit, 8 * half},
		build: func(b *ops.Builder, in []ops.View, out ops.View) {
			if bias != nil {
				b.Weight(bias)
			}
			state := b.State(ops.State{Name: "conv", Floats: (k - 1) * channels})
			b.Add(&ops.ShortConv{W: b.Weight(w), Bias: bias, Act: act, State: state, In: in[0], Out: out})
		},
		oracle: func(s sequence) []expected {
			kernel, shift := wide(w), wide(bias)
			return each(s, channels, func(pos int, e expected) expected {
				for c := range channels {
					sum, mag := 0.0, 0.0
					for j := range k {
						if t := pos - k + 1 + j; t >= 0 {
							sum += kernel[c*k+j] * s.in[0][t][c]
							mag += math.Abs(kernel[c*k+j] * s.in[0][t][c])
						}
					}
					if shift != nil {
						sum += shift[c]
						mag += math.Abs(shift[c])
					}
					e.want[c], e.mag[c] = activation(act, sum), 1.1*mag // no slope of SiLU is above 1.1
				}
				return e
			})
		},
	}
}

// mamba1Case scans channels with n states each.
func mamba1Case(n, channels int) testCase {
	name := fmt.Sprintf("mamba1/%dx%d", channels, n)
	r := random(name + "/weights")
	a := floats("a", n, channels, 1, vector(r, n*channels, uniform(-4, -0.05)))
	d := normal(r, "d", channels, 1, 1)
	return testCase{
		name: name, seqs: recurrentSeqs, tol: scanTolerance(n, recurrentSeqs[0]), out: channels,
		ins: []input{{width: channels}, {channels, uniform(0.001, 1)}, {width: n}, {width: n}},
		build: func(b *ops.Builder, in []ops.View, out ops.View) {
			state := b.State(ops.State{Name: "scan", Floats: channels * n})
			b.Add(&ops.Mamba1{A: b.Weight(a), D: b.Weight(d), N: n, State: state,
				X: in[0], Dt: in[1], B: in[2], C: in[3], Out: out})
		},
		oracle: func(s sequence) []expected {
			scan := newScan(channels, n)
			a, d := wide(a), wide(d)
			return each(s, channels, func(pos int, e expected) expected {
				x, dt, b, c := s.in[0][pos], s.in[1][pos], s.in[2][pos], s.in[3][pos]
				for ch := range channels {
					scan.step(ch, b, dt[ch]*x[ch], func(i int) float64 { return math.Exp(dt[ch] * a[ch*n+i]) })
					e.want[ch], e.mag[ch] = scan.read(ch, c)
					e.want[ch] += d[ch] * x[ch]
					e.mag[ch] += math.Abs(d[ch] * x[ch])
				}
				return e
			})
		},
	}
}

// mamba2Case scans heads of p channels with n states each.
func mamba2Case(heads, groups, p, n int) testCase {
	name := fmt.Sprintf("mamba2/%dof%d/%dx%d", groups, heads, p, n)
	r := random(name + "/weights")
	a := floats("a", heads, 1, 1, vector(r, heads, uniform(-4, -0.05)))
	d := normal(r, "d", heads, 1, 1)
	return testCase{
		name: name, seqs: recurrentSeqs, tol: scanTolerance(n, recurrentSeqs[0]), out: heads * p,
		ins: []input{{width: heads * p}, {heads, uniform(0.001, 1)}, {width: groups * n}, {width: groups * n}},
		build: func(b *ops.Builder, in []ops.View, out ops.View) {
			state := b.State(ops.State{Name: "scan", Floats: heads * p * n})
			b.Add(&ops.Mamba2{A: b.Weight(a), D: b.Weight(d), Heads: heads, Groups: groups, N: n, State: state,
				X: in[0], Dt: in[1], B: in[2], C: in[3], Out: out})
		},
		oracle: func(s sequence) []expected {
			scan := newScan(heads*p, n)
			a, d := wide(a), wide(d)
			return each(s, heads*p, func(pos int, e expected) expected {
				x, dt := s.in[0][pos], s.in[1][pos]
				for ch := range x {
					h := ch / p
					g := h * groups / heads
					b, c := s.in[2][pos][g*n:(g+1)*n], s.in[3][pos][g*n:(g+1)*n]
					scan.step(ch, b, dt[h]*x[ch], func(int) float64 { return math.Exp(dt[h] * a[h]) })
					e.want[ch], e.mag[ch] = scan.read(ch, c)
					e.want[ch] += d[h] * x[ch]
					e.mag[ch] += math.Abs(d[h] * x[ch])
				}
				return e
			})
		},
	}
}

// scan is a linear recurrence per channel, with the magnitude of what went into it.
type scan struct{ h, mag [][]float64 }

func newScan(channels, n int) scan {
	var s scan
	for range channels {
		s.h, s.mag = append(s.h, make([]float64, n)), append(s.mag, make([]float64, n))
	}
	return s
}

func (s scan) step(ch int, b []float64, u float64, decay func(i int) float64) {
	for i := range b {
		s.h[ch][i] = decay(i)*s.h[ch][i] + b[i]*u
		s.mag[ch][i] = decay(i)*s.mag[ch][i] + math.Abs(b[i]*u)
	}
}

func (s scan) read(ch int, c []float64) (y, mag float64) {
	for i := range c {
		y += s.h[ch][i] * c[i]
		mag += math.Abs(s.mag[ch][i] * c[i])
	}
	return y, mag
}

// gatedDeltaCase draws keys of length about 1, for which the recurrence contracts, as
// a model's normalised keys do.
func gatedDeltaCase(kHeads, vHeads, dim int) testCase {
	name := fmt.Sprintf("gateddelta/%dof%d/%d", kHeads, vHeads, dim)
	key := func(r *rand.Rand) float32 { return float32(r.NormFloat64() / math.Sqrt(2*float64(dim))) }
	scale := float32(1 / math.Sqrt(float64(dim)))
	return testCase{
		name: name, seqs: recurrentSeqs, tol: scanTolerance(dim, recurrentSeqs[0]), out: vHeads * dim,
		ins: []input{{width: kHeads * dim}, {kHeads * dim, key}, {width: vHeads * dim},
			{vHeads, uniform(-2, 0)}, {vHeads, uniform(0, 1)}},
		build: func(b *ops.Builder, in []ops.View, out ops.View) {
			state := b.State(ops.State{Name: "delta", Floats: vHeads * dim * dim})
			b.Add(&ops.GatedDelta{KHeads: kHeads, VHeads: vHeads, Dim: dim, Scale: scale, State: state,
				Q: in[0], K: in[1], V: in[2], Gate: in[3], Beta: in[4], Out: out})
		},
		oracle: func(s sequence) []expected {
			m := make([][]float64, vHeads) // per head [key][value]
			largest := make([]float64, vHeads)
			for h := range m {
				m[h] = make([]float64, dim*dim)
			}
			return each(s, vHeads*dim, func(pos int, e expected) expected {
				for h := range vHeads {
					kh := h % kHeads
					q, k := s.in[0][pos][kh*dim:(kh+1)*dim], s.in[1][pos][kh*dim:(kh+1)*dim]
					v := s.in[2][pos][h*dim : (h+1)*dim]
					out := deltaStep(m[h], q, k, v, math.Exp(s.in[3][pos][h]), s.in[4][pos][h])
					largest[h] = math.Max(largest[h], length(m[h])+length(v))
					for j, y := range out {
						e.want[h*dim+j] = y * float64(scale)
						e.mag[h*dim+j] = largest[h] * length(q) * float64(scale)
					}
				}
				return e
			})
		},
	}
}

// deltaStep is M = decay·M; M += k·(β(v − Mᵀk))ᵀ; Mᵀq (arXiv:2412.06464).
func deltaStep(m, q, k, v []float64, decay, beta float64) []float64 {
	n := len(q)
	for i := range m {
		m[i] *= decay
	}
	for j := range n {
		held := 0.0
		for i := range n {
			held += m[i*n+j] * k[i]
		}
		for i := range n {
			m[i*n+j] += k[i] * beta * (v[j] - held)
		}
	}
	out := make([]float64, n)
	for j := range n {
		for i := range n {
			out[j] += m[i*n+j] * q[i]
		}
	}
	return out
}

func length(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
