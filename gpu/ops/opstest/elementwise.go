package opstest

import (
	"fmt"
	"math"

	"ganglion/gpu/ops"
)

// pointwise makes a case of one output column per input column. f gets the values of
// all inputs at a column (shorter inputs repeat) and returns the output and the
// magnitude of its terms.
func pointwise(name string, ins []input, inPlace []int, tol tolerance,
	build func(b *ops.Builder, in []ops.View, out ops.View), f func(pos, col int, x []float64) (y, mag float64)) testCase {
	return halfPointwise(name, ins, inPlace, tol, build, func(pos, col int, x []float64) (y, mag, halves float64) {
		y, mag = f(pos, col, x)
		return y, mag, 0
	})
}

// halfPointwise is pointwise where f returns as well the magnitude of what exact mode
// rounds to a half.
func halfPointwise(name string, ins []input, inPlace []int, tol tolerance,
	build func(b *ops.Builder, in []ops.View, out ops.View), f func(pos, col int, x []float64) (y, mag, halves float64)) testCase {
	width := ins[0].width
	return testCase{
		name: name, ins: ins, out: width, inPlace: inPlace, seqs: rowCounts, tol: tol, build: build,
		oracle: func(s sequence) []expected {
			return each(s, width, func(pos int, e expected) expected {
				e.fastMag = make([]float64, width)
				for c := range width {
					x := make([]float64, len(ins))
					for i := range ins {
						x[i] = s.in[i][pos][c%ins[i].width]
					}
					var halves float64
					e.want[c], e.fastMag[c], halves = f(pos, c, x)
					e.mag[c] = e.fastMag[c] + halves*half/tol.exact
				}
				return e
			})
		},
	}
}

func elementwiseCases() []testCase {
	cases := append(binaryCases(), unaryCases()...)
	cases = append(cases, gluCases()...)
	cases = append(cases, scaleCases()...)
	cases = append(cases, posScaleCase("mistral3", 4, 0, 0.1), posScaleCase("offset", 3, 1, -0.25))
	return append(cases, softcapCase(30), softcapCase(0.5))
}

func binaryCases() []testCase {
	var cases []testCase
	for _, kind := range []ops.BinaryKind{ops.AddKind, ops.MulKind} {
		f := func(_, _ int, x []float64) (float64, float64) {
			if kind == ops.MulKind {
				return x[0] * x[1], math.Abs(x[0] * x[1])
			}
			return x[0] + x[1], math.Abs(x[0]) + math.Abs(x[1])
		}
		for _, w := range [][2]int{{1, 1}, {67, 67}, {256, 256}, {66, 11}, {96, 1}} {
			inPlace := []int{0}
			if w[0] == w[1] {
				inPlace = []int{0, 1}
			}
			cases = append(cases, pointwise(fmt.Sprintf("binary/%v/%d/%d", kind, w[0], w[1]),
				[]input{{width: w[0]}, {width: w[1]}}, inPlace, elementwiseTolerance(),
				func(b *ops.Builder, in []ops.View, out ops.View) {
					b.Add(&ops.Binary{Kind: kind, A: in[0], B: in[1], Out: out})
				}, f))
			name := fmt.Sprintf("addvec/%v/%d/%d", kind, w[0], w[1])
			vec := normal(random(name), "vec", w[1], 1, 1)
			v := wide(vec)
			cases = append(cases, pointwise(name, []input{{width: w[0]}}, []int{0}, elementwiseTolerance(),
				func(b *ops.Builder, in []ops.View, out ops.View) {
					b.Add(&ops.AddVec{W: b.Weight(vec), Mul: kind == ops.MulKind, In: in[0], Out: out})
				}, func(pos, c int, x []float64) (float64, float64) {
					return f(pos, c, []float64{x[0], v[c%len(v)]})
				}))
		}
	}
	return cases
}

// activation is an activation function in float64.
func activation(a ops.Act, x float64) float64 {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	switch a {
	case ops.SiLU:
		return x * sigmoid(x)
	case ops.GELU:
		if math.Abs(x) < 10 {
			x = asHalf(x)
		}
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case ops.GELUErf:
		return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
	case ops.GELUQuick:
		return x * sigmoid(1.702*x)
	case ops.ReLU:
		return math.Max(x, 0)
	case ops.ReLU2:
		return math.Max(x, 0) * math.Max(x, 0)
	case ops.Sigmoid:
		return sigmoid(x)
	case ops.Tanh:
		return math.Tanh(x)
	case ops.Softplus:
		return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	case ops.Exponential:
		return math.Exp(x)
	}
	return x
}

// activationMag is what an activation's error is measured by: its value and, where the
// function subtracts or its slope is steep, its argument.
func activationMag(a ops.Act, x float64) float64 {
	y := math.Abs(activation(a, x))
	switch a {
	case ops.Softplus, ops.Sigmoid, ops.Tanh:
		return 1 + y
	case ops.Exponential:
		return y * (1 + math.Abs(x))
	case ops.ReLU2:
		return y
	}
	return math.Abs(x)
}

// activationHalves is the magnitude of a value that exact mode rounds to a half: GELU's,
// within the range of its rule. Halves have one distance below 2⁻¹⁴.
func activationHalves(a ops.Act, x float64) float64 {
	if a != ops.GELU || math.Abs(x) >= 10 {
		return 0
	}
	return math.Max(math.Abs(activation(a, x)), smallestHalf)
}

func unaryCases() []testCase {
	var cases []testCase
	for a := ops.Identity; a <= ops.Exponential; a++ {
		for _, width := range []int{1, 77, 256} {
			cases = append(cases, halfPointwise(fmt.Sprintf("unary/%d/%d", a, width),
				[]input{{width, uniform(-12, 12)}}, []int{0}, functionTolerance(),
				func(b *ops.Builder, in []ops.View, out ops.View) {
					b.Add(&ops.Unary{Act: a, In: in[0], Out: out})
				},
				func(_, _ int, x []float64) (y, mag, halves float64) {
					return activation(a, x[0]), activationMag(a, x[0]), activationHalves(a, x[0])
				}))
		}
	}
	return cases
}

func gluCases() []testCase {
	var cases []testCase
	for _, g := range []ops.GLU{
		{Act: ops.SiLU}, {Act: ops.GELU}, {Act: ops.ReLU2}, {Act: ops.GELUErf, UpOffset: 1},
		{Act: ops.SiLU, Limit: 2}, {Limit: 7, Alpha: 1.702, UpOffset: 1},
	} {
		for _, width := range []int{1, 77, 256} {
			name := fmt.Sprintf("glu/act%d,limit%v,alpha%v,offset%v/%d", g.Act, g.Limit, g.Alpha, g.UpOffset, width)
			cases = append(cases, halfPointwise(name, []input{{width, uniform(-9, 9)}, {width, uniform(-9, 9)}}, []int{0, 1},
				functionTolerance(), func(b *ops.Builder, in []ops.View, out ops.View) {
					op := g
					op.Gate, op.Up, op.Out = in[0], in[1], out
					b.Add(&op)
				}, func(_, _ int, x []float64) (y, mag, halves float64) { return glu(g, x[0], x[1]) }))
		}
	}
	return cases
}

func glu(g ops.GLU, gate, up float64) (y, mag, halves float64) {
	if l := float64(g.Limit); l > 0 {
		gate, up = math.Min(gate, l), math.Max(-l, math.Min(l, up))
	}
	act := activation(g.Act, gate)
	if a := float64(g.Alpha); a > 0 {
		act = gate / (1 + math.Exp(-a*gate))
	}
	size := math.Abs(gate)
	if g.Alpha == 0 {
		size, halves = activationMag(g.Act, gate), activationHalves(g.Act, gate)
	}
	factor := math.Abs(up) + math.Abs(float64(g.UpOffset))
	return act * (up + float64(g.UpOffset)), size * factor, halves * factor
}

func scaleCases() []testCase {
	var cases []testCase
	for _, s := range []ops.Scale{{Factor: 1}, {Factor: -0.3}, {Factor: 2, Offset: 0.5}, {Factor: 3, Offset: -1, Clamp: 1.25}} {
		name := fmt.Sprintf("scale/%v,%v,%v", s.Factor, s.Offset, s.Clamp)
		cases = append(cases, pointwise(name, []input{{width: 77}}, []int{0}, elementwiseTolerance(),
			func(b *ops.Builder, in []ops.View, out ops.View) {
				op := s
				op.In, op.Out = in[0], out
				b.Add(&op)
			}, func(_, _ int, x []float64) (float64, float64) {
				y := x[0]*float64(s.Factor) + float64(s.Offset)
				if c := float64(s.Clamp); c > 0 {
					y = math.Max(-c, math.Min(c, y))
				}
				return y, math.Abs(x[0]*float64(s.Factor)) + math.Abs(float64(s.Offset))
			}))
	}
	return cases
}

func softcapCase(limit float32) testCase {
	return pointwise(fmt.Sprintf("softcap/%v", limit), []input{{77, uniform(-90, 90)}}, []int{0}, functionTolerance(),
		func(b *ops.Builder, in []ops.View, out ops.View) {
			b.Add(&ops.Softcap{Cap: limit, In: in[0], Out: out})
		}, func(_, _ int, x []float64) (float64, float64) {
			return float64(limit) * math.Tanh(x[0]/float64(limit)), float64(limit)
		})
}

func posScaleCase(name string, floor, offset, scale float32) testCase {
	return pointwise("posscale/"+name, []input{{width: 77}}, []int{0}, elementwiseTolerance(),
		func(b *ops.Builder, in []ops.View, out ops.View) {
			b.Add(&ops.PosScale{Floor: floor, Offset: offset, Scale: scale, In: in[0], Out: out})
		}, func(pos, _ int, x []float64) (float64, float64) {
			f := math.Log(math.Floor((float64(pos)+float64(offset))/float64(floor))+1)*float64(scale) + 1
			return x[0] * f, math.Abs(x[0] * f)
		})
}
