package ops

import (
	"hash/fnv"
	"math"
	"testing"
)

// TestHostFunctions holds the table functions against math.
func TestHostFunctions(t *testing.T) {
	near := func(name string, x, got, want, bound float64) {
		if !(math.Abs(got-want) <= bound) {
			t.Errorf("%s(%v) = %v, want %v: off by %.3g, %.3g is allowed", name, x, got, want, math.Abs(got-want), bound)
		}
	}
	for i := range 20000 {
		x := math.Exp(float64(i)/100 - 100) // 10⁻⁴³ to 10⁴³
		near("ln", x, hostLn(x), math.Log(x), 4e-16*(1+math.Abs(math.Log(x))))
		y := float64(i)/50 - 200
		near("2^", y, hostExp2(y), math.Exp2(y), 1e-15*math.Exp2(y))
		e := float64(i) / 20000
		near("10000^−", e, hostPow(10000, -e), math.Pow(10000, -e), 4e-15*math.Pow(10000, -e))
		a := float64(i) * 50.0001 // to a million
		sin, cos := hostSinCos(a)
		wantSin, wantCos := math.Sincos(a)
		near("sin", a, sin, wantSin, 4e-16)
		near("cos", a, cos, wantCos, 4e-16)
	}
	for _, n := range []float64{-8, -1, 0, 1, 60} {
		if got, want := hostExp2(n), math.Ldexp(1, int(n)); got != want {
			t.Errorf("2^%v = %v, want exactly %v", n, got, want)
		}
	}
	if sin, cos := hostSinCos(0); sin != 0 || cos != 1 {
		t.Errorf("sine and cosine of 0 are %v and %v", sin, cos)
	}
	if got := hostLn(1); got != 0 {
		t.Errorf("ln 1 = %v", got)
	}
}

// TestTableFingerprint pins the bits of a table: they must be those of every machine,
// and with a change of them logged requests of exact mode replay to other bytes.
func TestTableFingerprint(t *testing.T) {
	table := RoPETable{NRot: 128, Base: 500000, Scale: 0.25, Magnitude: 1.1386,
		YaRN: true, OriginalContext: 4096, BetaFast: 32, BetaSlow: 1}
	cos, sin := table.Angles(100, 3000)
	h := fnv.New64a()
	for _, v := range [][]float32{cos, sin, ALiBiSlopes(40, 8)} {
		for _, x := range v {
			b := math.Float32bits(x)
			h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
		}
	}
	if got, want := h.Sum64(), uint64(0xaff5580ca2ec3576); got != want {
		t.Errorf("fingerprint is %#016x, want %#016x", got, want)
	}
}

// Head h of n decays by 2^(−8(h+1)/n) a position; for a power of two these are ALiBi's
// slopes.
func TestHeadDecays(t *testing.T) {
	want := ALiBiSlopes(8, 8)
	for h, got := range HeadDecays(8) {
		if got != want[h] {
			t.Errorf("head %d decays by %v, want %v", h, got, want[h])
		}
	}
	if got := HeadDecays(3); got[2] != 1.0/256 || math.Abs(float64(got[0])-math.Exp2(-8.0/3)) > 1e-8 {
		t.Errorf("three heads decay by %v", got)
	}
}
