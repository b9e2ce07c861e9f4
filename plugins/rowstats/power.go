package rowstats

import "math"

// Coefficients of 2^f on [−1/2, 1/2] that make the largest relative error least with
// 2^0 = 1: 9.2e-8, and 1.9e-7 in float32.
const (
	exp1 = 0.69314698
	exp2 = 0.24022242
	exp3 = 0.055507336
	exp4 = 0.009671513
	exp5 = 0.0013264727
)

const (
	// Log2E turns natural exponents into those of two.
	Log2E = 1.44269504
	// RoundMagic, added to a number below 2^22, leaves it rounded to the nearest whole
	// number in the low bits of the sum.
	RoundMagic = 3 << 22
	// Farthest is the exponent of two at which weights are zero.
	Farthest = -100
)

// Power returns 2^t for t ≤ 0, in float32 operations of which none is fused; 0 from
// Farthest on, for NaN and for what is above 0. Loops spell it out: its parts are inlined,
// the whole is not.
func Power(t float32) float32 {
	if !(t > Farthest && t <= 0) {
		return 0
	}
	m := Whole(t)
	return Scaled(Fraction(float32(t-float32(m-RoundMagic))), m)
}

// Whole returns t rounded to a whole number, in its low bits.
func Whole(t float32) float32 { return float32(t + RoundMagic) }

// Fraction returns 2^f for f in [−1/2, 1/2]. The sums stand in pairs, for so a processor
// waits least.
func Fraction(f float32) float32 {
	g := float32(f * f)
	p := float32(float32(exp5*f) + exp4)
	p = float32(float32(p*g) + float32(float32(exp3*f)+exp2))
	return float32(float32(p*g) + float32(float32(exp1*f)+1))
}

// Scaled returns p times two to what Whole returned.
func Scaled(p, m float32) float32 {
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(m)<<23)
}

// ln returns the natural logarithm of a positive, normal number, with operations that
// no compiler fuses, to about 1e-14: x = 2^e·m, ln m = 2·artanh((m−1)/(m+1)).
func ln(x float64) float64 {
	frac, e := math.Frexp(x) // frac in [1/2, 1)
	if frac < math.Sqrt2/2 {
		frac, e = frac*2, e-1
	}
	r := float64((frac - 1) / (frac + 1))
	q := float64(r * r)
	sum := 0.0
	for k := 17; k >= 1; k -= 2 {
		sum = float64(float64(sum*q) + 1/float64(k))
	}
	return float64(float64(e)*math.Ln2) + float64(2*float64(r*sum))
}
