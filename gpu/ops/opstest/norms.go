package opstest

import (
	"fmt"
	"math"

	"ganglion/gpu/ops"
)

// normCases cover groups of every kind: the whole view, heads, odd widths, weights of
// a group's width, of the view's width, and none.
func normCases() []testCase {
	var cases []testCase
	for _, n := range []struct{ width, group, weight int }{
		{1, 0, 1}, {67, 0, 67}, {640, 0, 640}, {640, 0, 0}, {256, 64, 64}, {160, 80, 160}, {45, 15, 15}, {45, 15, 0},
	} {
		for kind := range 3 {
			cases = append(cases, normCase(kind, n.width, n.group, n.weight))
		}
	}
	return cases
}

// The kinds of norms.
const (
	rms = iota
	layer
	l2
)

func normCase(kind, width, group, weight int) testCase {
	name := fmt.Sprintf("%s/%d/group%d/weight%d", [...]string{"rmsnorm", "layernorm", "l2norm"}[kind], width, group, weight)
	const eps = 1e-5
	r := random(name + "/weights")
	var w, bias *ops.Weight
	if weight > 0 && kind != l2 {
		w = normal(r, "w", weight, 1, 1)
		if kind == layer {
			bias = normal(r, "bias", weight, 1, 1)
		}
	}
	n := group
	if n == 0 {
		n = width
	}
	scales, shifts := wide(w), wide(bias)
	return testCase{
		name: name, ins: []input{{width: width}}, out: width, inPlace: []int{0}, seqs: rowCounts, tol: normTolerance(n),
		build: func(b *ops.Builder, in []ops.View, out ops.View) {
			for _, x := range []*ops.Weight{w, bias} {
				if x != nil {
					b.Weight(x)
				}
			}
			switch kind {
			case rms:
				b.Add(&ops.RMSNorm{W: w, Eps: eps, Group: group, In: in[0], Out: out})
			case layer:
				b.Add(&ops.LayerNorm{W: w, Bias: bias, Eps: eps, Group: group, In: in[0], Out: out})
			case l2:
				b.Add(&ops.L2Norm{Eps: eps, Group: group, In: in[0], Out: out})
			}
		},
		oracle: func(s sequence) []expected {
			return each(s, width, func(pos int, e expected) expected {
				for at := 0; at < width; at += n {
					normGroup(kind, eps, s.in[0][pos][at:at+n], at, scales, shifts, e)
				}
				return e
			})
		},
	}
}

// normGroup normalises the group x that stands at column at.
func normGroup(kind int, eps float64, x []float64, at int, w, bias []float64, e expected) {
	var mean, squares float64
	if kind == layer {
		for _, v := range x {
			mean += v / float64(len(x))
		}
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	if kind != l2 {
		squares /= float64(len(x))
	}
	scale := 1 / math.Sqrt(squares+eps)
	for i, v := range x {
		e.want[at+i] = (v - mean) * scale
		e.mag[at+i] = (math.Abs(v) + math.Abs(mean)) * scale
		if w != nil {
			e.want[at+i] *= w[(at+i)%len(w)]
			e.mag[at+i] *= math.Abs(w[(at+i)%len(w)])
		}
		if bias != nil {
			e.want[at+i] += bias[(at+i)%len(bias)]
			e.mag[at+i] += math.Abs(bias[(at+i)%len(bias)])
		}
	}
}

// ropeCases rotate whole heads, parts of heads, in both orders, with every kind of
// table.
func ropeCases() []testCase {
	plain := ops.RoPETable{Base: 10000, Scale: 1, Magnitude: 1}
	linear := plain
	linear.Scale = 0.25
	factors := plain
	factors.Factors = make([]float32, 32)
	for i := range factors.Factors {
		factors.Factors[i] = 1 + float32(i)/3
	}
	factors.Factors[31] = 1e30 // not rotated at all
	yarn := plain
	yarn.YaRN, yarn.OriginalContext, yarn.BetaFast, yarn.BetaSlow = true, 64, 32, 1
	yarn.Scale, yarn.Magnitude = 0.125, 1.2
	picture := axes(plain, 36, func(i int) uint8 { return uint8(1 + i/18) })
	picture.Period = 18
	var cases []testCase
	for _, k := range []struct {
		name                    string
		table                   ops.RoPETable
		heads, dim, nrot, start int
	}{
		{"plain", plain, 4, 64, 64, 0}, {"plain", plain, 1, 256, 256, 0}, {"plain", plain, 3, 80, 80, 0},
		{"partial", plain, 3, 80, 32, 0}, {"partial", plain, 2, 96, 32, 64}, {"smallest", plain, 5, 2, 2, 0},
		{"sections", axes(plain, 32, func(i int) uint8 { return uint8(i / 11) }), 2, 64, 64, 0},
		{"interleaved", axes(yarn, 24, func(i int) uint8 { return uint8(i % 3) }), 2, 80, 48, 16},
		{"picture", picture, 3, 72, 72, 0}, {"lines", axes(linear, 18, func(int) uint8 { return 1 }), 2, 72, 36, 36},
		{"linear", linear, 2, 64, 64, 0}, {"factors", factors, 2, 64, 64, 0}, {"yarn", yarn, 2, 128, 128, 0},
	} {
		k.table.NRot = k.nrot
		for _, neox := range []bool{false, true} {
			name := fmt.Sprintf("rope/%s/%dx%d/%d+%d/neox=%v", k.name, k.heads, k.dim, k.start, k.nrot, neox)
			cases = append(cases, ropeCase(name, k.table, k.heads, k.dim, k.start, neox))
		}
	}
	return cases
}

// axes gives every pair of a table an axis.
func axes(t ops.RoPETable, pairs int, axis func(i int) uint8) ops.RoPETable {
	t.Axes = make([]uint8, pairs)
	for i := range t.Axes {
		t.Axes[i] = axis(i)
	}
	return t
}

// rotaryOf are positions of their own on every axis, the first of them not in order.
func rotaryOf(seq, pos int) [ops.Axes]int32 {
	if seq > 0 {
		return [ops.Axes]int32{0, 1, int32(pos)}
	}
	return [ops.Axes]int32{int32(pos * 13 % 70), int32(pos / 7), int32(pos % 7)}
}

func ropeCase(name string, t ops.RoPETable, heads, dim, start int, neox bool) testCase {
	var rotary func(seq, pos int) [ops.Axes]int32
	if t.Axes != nil {
		rotary = rotaryOf
	}
	return testCase{
		name: name, ins: []input{{width: heads * dim}}, out: heads * dim, inPlace: []int{0}, seqs: []int{70, 3},
		tol: elementwiseTolerance(), rotary: rotary,
		build: func(b *ops.Builder, in []ops.View, out ops.View) {
			b.Add(&ops.RoPE{Table: b.Table(&t), HeadDim: dim, Start: start, NeoX: neox, In: in[0], Out: out})
		},
		oracle: func(s sequence) []expected {
			return each(s, heads*dim, func(pos int, e expected) expected {
				copy(e.want, s.in[0][pos])
				for i, v := range e.want {
					e.mag[i] = math.Abs(v)
				}
				for h := range heads {
					for i := range t.NRot / 2 {
						a := h*dim + start + 2*i
						b := a + 1
						if neox {
							a = h*dim + start + i
							b = a + t.NRot/2
						}
						at := pos
						if rotary != nil {
							at = int(rotary(s.index, pos)[t.Axes[i]])
						}
						rotate(e, a, b, ropeAngle(t, i)*float64(at), t.Magnitude)
					}
				}
				return e
			})
		},
	}
}

func rotate(e expected, a, b int, angle, magnitude float64) {
	x, y := e.want[a], e.want[b]
	sin, cos := math.Sincos(angle)
	e.want[a] = (x*cos - y*sin) * magnitude
	e.want[b] = (x*sin + y*cos) * magnitude
	e.mag[a] = (math.Abs(x) + math.Abs(y)) * magnitude
	e.mag[b] = e.mag[a]
}

// ropeAngle is the angle of pair i per position (arXiv:2104.09864; YaRN:
// arXiv:2309.00071, section 3.2, with its ramp over the pairs).
func ropeAngle(t ops.RoPETable, i int) float64 {
	columns := t.NRot
	if t.Period > 0 {
		i, columns = i%t.Period, 2*t.Period
	}
	angle := math.Exp(-2 * float64(i) / float64(columns) * math.Log(t.Base))
	if t.Factors != nil {
		angle /= float64(t.Factors[i])
	}
	if !t.YaRN {
		return angle * t.Scale
	}
	// The pair that turns beta times within the original context.
	pair := func(beta float64) float64 {
		return float64(t.NRot) * math.Log(float64(t.OriginalContext)/(beta*2*math.Pi)) / (2 * math.Log(t.Base))
	}
	low := math.Max(math.Floor(pair(t.BetaFast)), 0)
	high := math.Min(math.Ceil(pair(t.BetaSlow)), float64(t.NRot-1))
	ramp := (float64(i) - low) / math.Max(high-low, 0.001)
	ramp = math.Max(0, math.Min(1, ramp))
	return angle*t.Scale*ramp + angle*(1-ramp)
}
