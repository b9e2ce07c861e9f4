package ops

import "math"

// Float64 functions for the tables that the host computes. math.Exp, Pow and Sincos
// fuse multiplications and additions where the machine can, so their last bit depends
// on the processor, and with it some float32 of a table. These use correctly rounded
// operations only, products converted before they are added. They are Taylor series on
// reduced arguments: slow, and right to a few units of 10⁻¹⁶.

const (
	ln2 = 0.693147180559945309417232121458

	// π/2 in three parts of 33, 33 and 53 bits (Cody and Waite): n times the first two
	// is exact for n below 2²⁰.
	halfPi1 = 1.57079632673412561417e+00
	halfPi2 = 6.07710050630396597660e-11
	halfPi3 = 2.02226624879595063154e-21
)

// The Taylor coefficients of sin r/r and cos r in r², the last first, without the 1.
var (
	sinSeries = [...]float64{
		1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11 * 12 * 13 * 14 * 15 * 16 * 17), // r¹⁶
		-1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11 * 12 * 13 * 14 * 15),
		1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11 * 12 * 13),
		-1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11),
		1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9),
		-1.0 / (2 * 3 * 4 * 5 * 6 * 7),
		1.0 / (2 * 3 * 4 * 5),
		-1.0 / (2 * 3),
	}
	cosSeries = [...]float64{
		1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11 * 12 * 13 * 14 * 15 * 16), // r¹⁶
		-1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11 * 12 * 13 * 14),
		1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11 * 12),
		-1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10),
		1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8),
		-1.0 / (2 * 3 * 4 * 5 * 6),
		1.0 / (2 * 3 * 4),
		-1.0 / 2,
	}
)

// hostLn is the natural logarithm of positive normal x.
func hostLn(x float64) float64 {
	m, e := math.Frexp(x) // [½, 1)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	// ln m = 2·(s + s³/3 + s⁵/5 + …), |s| ≤ 0.172.
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	sum := 0.0
	for k := 23; k >= 1; k -= 2 {
		sum = float64(sum*z) + 1/float64(k)
	}
	return float64(2*float64(s*sum)) + float64(float64(e)*ln2)
}

// hostExp2 is 2^x.
func hostExp2(x float64) float64 {
	n := math.RoundToEven(x)
	r := float64((x - n) * ln2) // |r| ≤ 0.347
	sum := 1.0
	for k := 14; k >= 1; k-- {
		sum = 1 + float64(sum*r)/float64(k)
	}
	return math.Ldexp(sum, int(n))
}

// hostPow is x^y for positive x.
func hostPow(x, y float64) float64 { return hostExp2(float64(y*hostLn(x)) / ln2) }

// hostSinCos are the sine and cosine of x up to 10⁶.
func hostSinCos(x float64) (sin, cos float64) {
	n := math.RoundToEven(x / (math.Pi / 2))
	r := x - float64(n*halfPi1)
	r -= float64(n * halfPi2)
	r -= float64(n * halfPi3)
	z := float64(r * r) // |r| ≤ 0.786
	for i := range sinSeries {
		sin = float64(sin*z) + sinSeries[i]
		cos = float64(cos*z) + cosSeries[i]
	}
	sin = r + float64(float64(sin*z)*r)
	cos = 1 + float64(cos*z)
	switch int(n) & 3 {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}
