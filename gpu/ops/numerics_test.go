package ops

import (
	"hash/fnv"
	"math"
	"testing"
)

// samples are n values from lo to hi evenly spaced, and n of each sign whose bit
// patterns are evenly spaced, which samples every power of two alike. They use exact
// arithmetic only, so that every machine tests the same values.
func samples(lo, hi float32, n int) []float32 {
	var xs []float32
	byBits := func(from, to, sign float32) {
		a, b := uint64(math.Float32bits(from)), uint64(math.Float32bits(to))
		for i := range uint64(n) {
			xs = append(xs, sign*math.Float32frombits(uint32(a+(b-a)*i/uint64(n-1))))
		}
	}
	for i := range n {
		xs = append(xs, lo+float32((hi-lo)/float32(n-1)*float32(i)))
	}
	const small = 1e-6
	if hi > 0 {
		byBits(max(lo, min(small, hi)), hi, 1)
	}
	if lo < 0 {
		byBits(small, -lo, -1)
	}
	return xs
}

const ulp = 1.0 / (1 << 23) // distance of float32 values above 1

// TestElementaryFunctions holds the functions of exact mode against math in float64.
// An error is allowed to be abs + rel·|want|. The fingerprint is that of the results'
// bits: exact mode promises the same bits everywhere, so it must not change with the
// machine, and a change of the code that moves a bit changes every logged request.
func TestElementaryFunctions(t *testing.T) {
	act := func(a Act) func(float32) float32 { return a.Apply }
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	tests := []struct {
		name        string
		f           func(float32) float32
		want        func(float64) float64
		lo, hi      float32
		abs, rel    float64
		fingerprint uint64
	}{
		{"exp", Exp, math.Exp, -87.3, 88, 0, 1.5 * ulp, 0x5c95d2c87e5041a2},
		{"recip", Recip, func(x float64) float64 { return 1 / x }, 1e-37, 4e37, 0, 1.25 * ulp, 0x4128ba40baa675f0},
		{"rsqrt", Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 1.2e-38, 3.4e38, 0, 2 * ulp, 0x4204db877ebedc56},
		{"ln", Ln, math.Log, 1.2e-38, 3.4e38, 0.5 * ulp, 1 * ulp, 0x71087c5d6c1bd9c7},
		{"tanh", TanhF, math.Tanh, -12, 12, 0, 2 * ulp, 0x79f11e98d0ced89f},
		{"sigmoid", SigmoidF, sigmoid, -87, 87, 0, 3 * ulp, 0xa5b3a12bff212415},
		{"softplus", SoftplusF, func(x float64) float64 { return math.Log1p(math.Exp(x)) }, -40, 40, 1 * ulp, 1 * ulp, 0x135922bcb203a31f},
		{"silu", act(SiLU), func(x float64) float64 { return x * sigmoid(x) }, -80, 80, 0, 4 * ulp, 0x4c54e305e7dd8f2a},
		{"gelu", act(GELU), func(x float64) float64 {
			if math.Abs(x) < 10 {
				x = float64(RoundHalf(float32(x)))
			}
			return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}, -12, 12, 1.0/(1<<25) + 4*ulp, 1.0/(1<<11) + 4*ulp, 0x659ebf872186b928}, // half the distance of halves
		{"gelu/erf", act(GELUErf), func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) }, -12, 12, 4 * ulp, 4 * ulp, 0x9a5cb084972bcb98},
		{"gelu/quick", act(GELUQuick), func(x float64) float64 { return x * sigmoid(1.702*x) }, -12, 12, 4 * ulp, 4 * ulp, 0xd1bac055c842c2db},
		{"relu", act(ReLU), func(x float64) float64 { return math.Max(x, 0) }, -9, 9, 0, 0, 0xfb7d54571fbb9917},
		{"relu2", act(ReLU2), func(x float64) float64 { return math.Max(x, 0) * math.Max(x, 0) }, -9, 9, 0, ulp / 2, 0xa8d55487f00f5acd},
		{"identity", act(Identity), func(x float64) float64 { return x }, -9, 9, 0, 0, 0x5da3eb731a473874},
		{"tanh/act", act(Tanh), math.Tanh, -12, 12, 0, 2 * ulp, 0x79f11e98d0ced89f},
		{"exponential", act(Exponential), math.Exp, -87.3, 88, 0, 1.5 * ulp, 0x5c95d2c87e5041a2},
		{"softplus/act", act(Softplus), func(x float64) float64 { return math.Log1p(math.Exp(x)) }, -40, 40, 1 * ulp, 1 * ulp, 0x135922bcb203a31f},
		{"sigmoid/act", act(Sigmoid), sigmoid, -87, 87, 0, 3 * ulp, 0xa5b3a12bff212415},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := fnv.New64a()
			var worst, at float64
			for _, x := range samples(tt.lo, tt.hi, 20000) {
				got, want := float64(tt.f(x)), tt.want(float64(x))
				if diff := math.Abs(got-want) / (tt.abs + tt.rel*math.Abs(want) + 1e-300); !(diff <= worst) {
					worst, at = diff, float64(x)
				}
				b := math.Float32bits(float32(got))
				h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
			}
			if !(worst <= 1) {
				t.Errorf("f(%v) = %v, want %v: %.2f times the bound", at, tt.f(float32(at)), tt.want(at), worst)
			}
			if got := h.Sum64(); got != tt.fingerprint {
				t.Errorf("fingerprint of the bits is %#016x, want %#016x", got, tt.fingerprint)
			}
		})
	}
}

// TestGELUIsOfHalves wants GELU to read halves and to give halves between −10 and 10,
// and to be 0 or its argument beyond.
func TestGELUIsOfHalves(t *testing.T) {
	for _, x := range samples(-12, 12, 5000) {
		got, want := GELU.Apply(x), GELU.Apply(RoundHalf(x))
		switch {
		case x <= -10:
			want = 0
		case x >= 10:
			want = x
		case got != RoundHalf(got):
			t.Errorf("gelu(%v) = %v is no half", x, got)
		}
		if got != want {
			t.Errorf("gelu(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestUndefinedStaysVisible wants NaN to pass through, so that the guard on logits
// sees it.
func TestUndefinedStaysVisible(t *testing.T) {
	nan := float32(math.NaN())
	for a := Identity; a <= Exponential; a++ {
		if got := a.Apply(nan); got == got {
			t.Errorf("activation %d of NaN is %v", a, got)
		}
	}
	if got := Dot([]float32{1, nan}, []float32{0, 0}); got == got {
		t.Errorf("dot product with NaN is %v", got)
	}
}

// TestReductionOrder uses values whose sum depends on the order: 2²⁴ swallows a 1 that
// is added to it alone, and does not swallow a 2.
func TestReductionOrder(t *testing.T) {
	const big = 1 << 24
	ones := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = 1
		}
		return v
	}
	with := func(v []float32, at int, x float32) []float32 { v[at] = x; return v }
	tests := []struct {
		name string
		v    []float32
		want float32
	}{
		{"nothing", nil, 0},
		{"one", []float32{3}, 3},
		// Lane 0 holds big; lane 8 joins it first (a lone 1, swallowed), then the sum
		// of lanes 4 and 12 (2), of 2, 6, 10, 14 (4), of the odd lanes (8).
		{"fold", with(ones(16), 0, big), big + 14},
		// A second 1 in lane 0 is swallowed too; lane 8 is 2 now and counts.
		{"ascending in lanes", with(ones(32), 0, big), big + 30},
		// The second element of lane 0 comes after the 1, which rounds to even.
		{"big comes last", with(ones(32), 16, big), big + 30},
		{"tail", with(ones(17), 0, big), big + 14},
		{"tail in lane 1", with(ones(18), 0, big), big + 16},
	}
	for _, tt := range tests {
		if got := Sum(tt.v); got != tt.want {
			t.Errorf("%s: sum is %v, want %v", tt.name, got, tt.want)
		}
		if got := Dot(tt.v, ones(len(tt.v))); got != tt.want {
			t.Errorf("%s: dot product is %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestDotRoundsProducts wants the product rounded before it is added: 1 + 2⁻¹² squared
// loses its last bit, which a fused multiply-add would keep.
func TestDotRoundsProducts(t *testing.T) {
	x := float32(1 + 1.0/4096)
	a, b := make([]float32, 17), make([]float32, 17)
	a[0], b[0], a[16], b[16] = -1, 1, x, x
	if got, want := Dot(a, b), float32(2.0/4096); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
