package ops

import (
	"math"

	"ganglion/gpu/tensor"
)

// The elementary functions of exact mode. They use only float32 add, multiply and
// integer arithmetic on the bits, in the order written here, so that a GPU kernel
// can repeat them bit for bit; every product is converted before it is added, for
// Go may fuse x*y+z on some machines. Coefficients: S. Moshier, Cephes
// (single precision); initial guesses: the classic bit tricks for 1/x and 1/√x.

// Lanes is the width of the reduction of exact mode: element i of a sum belongs to
// lane i mod Lanes, each lane adds its elements in ascending order, and the lanes
// are folded in half until one is left.
const Lanes = 16

// KVChunk is the number of positions in one attention chunk of exact mode; chunks
// are anchored at absolute position 0.
const KVChunk = 256

// FoldLanes adds the lanes of a reduction: 16 → 8 → 4 → 2 → 1.
func FoldLanes(l *[Lanes]float32) float32 {
	for n := Lanes / 2; n > 0; n /= 2 {
		for i := range n {
			l[i] += l[i+n]
		}
	}
	return l[0]
}

// Dot is Σ a[i]·b[i] in the reduction order of exact mode. len(b) ≥ len(a).
func Dot(a, b []float32) float32 {
	var l [Lanes]float32
	b = b[:len(a)]
	for i, x := range a {
		l[i%Lanes] += float32(x * b[i])
	}
	return FoldLanes(&l)
}

// Sum is Σ a[i] in the reduction order of exact mode.
func Sum(a []float32) float32 {
	var l [Lanes]float32
	for i, x := range a {
		l[i%Lanes] += x
	}
	return FoldLanes(&l)
}

// Exp is e^x: 0 below -87.33, e^88 above 88.
func Exp(x float32) float32 {
	if x < -87.33 {
		return 0
	}
	if x > 88 {
		x = 88
	}
	const magic = 12582912 // 1.5·2²³: adding it rounds to the nearest integer
	n := float32(x*1.44269504088896341) + magic
	n -= magic
	r := x - float32(n*0.693359375)
	r -= float32(n * -2.12194440e-4)
	p := float32(1.9875691500e-4)
	p = float32(p*r) + 1.3981999507e-3
	p = float32(p*r) + 8.3334519073e-3
	p = float32(p*r) + 4.1665795894e-2
	p = float32(p*r) + 1.6666665459e-1
	p = float32(p*r) + 5.0000001201e-1
	p = float32(p * float32(r*r))
	p = (p + r) + 1
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}

// Recip is 1/x for positive normal x up to 2¹²⁵, by four Newton steps.
func Recip(x float32) float32 {
	r := math.Float32frombits(0x7EF311C7 - math.Float32bits(x))
	for range 4 {
		e := 1 - float32(x*r)
		r += float32(r * e)
	}
	return r
}

// Rsqrt is 1/√x for positive normal x, by three Newton steps.
func Rsqrt(x float32) float32 {
	r := math.Float32frombits(0x5F375A86 - math.Float32bits(x)>>1)
	h := float32(0.5 * x)
	for range 3 {
		t := float32(h * r)
		r = float32(r * (1.5 - float32(t*r)))
	}
	return r
}

// Ln is the natural logarithm of positive normal x.
func Ln(x float32) float32 {
	bits := math.Float32bits(x)
	e := float32(int32(bits>>23) - 126)
	m := math.Float32frombits(bits&0x007FFFFF | 0x3F000000) // [0.5, 1)
	if m < 0.707106781186547524 {
		e -= 1
		m += m
	}
	m -= 1
	z := float32(m * m)
	p := float32(7.0376836292e-2)
	for _, c := range [...]float32{-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1} {
		p = float32(p*m) + c
	}
	y := float32(float32(p*m) * z)
	y += float32(e * -2.12194440e-4)
	y -= float32(0.5 * z)
	return (m + y) + float32(e*0.693359375)
}

// TanhF is the hyperbolic tangent.
func TanhF(x float32) float32 {
	a := x
	if a < 0 {
		a = -a
	}
	if a < 0.625 {
		z := float32(x * x)
		p := float32(-5.70498872745e-3)
		p = float32(p*z) + 2.06390887954e-2
		p = float32(p*z) - 5.37397155531e-2
		p = float32(p*z) + 1.33314422036e-1
		p = float32(p*z) - 3.33332819422e-1
		return x + float32(float32(p*z)*x)
	}
	t := float32(1)
	if !(a >= 9) { // so that NaN stays NaN
		t = 1 - float32(2*Recip(Exp(a+a)+1))
	}
	if x < 0 {
		return -t
	}
	return t
}

// SigmoidF is 1/(1+e^−x).
func SigmoidF(x float32) float32 {
	if x >= 0 {
		return Recip(1 + Exp(-x))
	}
	e := Exp(x)
	return float32(e * Recip(1+e))
}

// SoftplusF is ln(1+e^x); x itself above 20. Its error is absolute: far below 0 the
// result loses its leading digits to the 1.
func SoftplusF(x float32) float32 {
	if !(x <= 20) { // so that NaN stays NaN
		return x
	}
	return Ln(1 + Exp(x))
}

// erf is Abramowitz and Stegun 7.1.26.
func erf(x float32) float32 {
	a := x
	if a < 0 {
		a = -a
	}
	t := Recip(1 + float32(0.3275911*a))
	p := float32(1.061405429)
	p = float32(p*t) - 1.453152027
	p = float32(p*t) + 1.421413741
	p = float32(p*t) - 0.284496736
	p = float32(p*t) + 0.254829592
	y := 1 - float32(float32(p*t)*Exp(-float32(a*a)))
	if x < 0 {
		return -y
	}
	return y
}

// RoundHalf is x rounded to the nearest half, ties to even, and widened again.
func RoundHalf(x float32) float32 { return tensor.F16ToF32(tensor.F32ToF16(x)) }

// geluF is the tanh form of GELU as the reference has it: between −10 and 10 a
// function of halves with halves as its values, beyond them 0 or x itself.
func geluF(x float32) float32 {
	if x <= -10 {
		return 0
	}
	if x >= 10 {
		return x
	}
	x = RoundHalf(x)
	in := float32(0.044715*float32(x*x)) + 1
	in = float32(float32(0.79788456080286535588*x) * in)
	return RoundHalf(float32(float32(0.5*x) * (1 + TanhF(in))))
}

// Apply is the activation function of exact mode.
func (a Act) Apply(x float32) float32 {
	switch a {
	case SiLU:
		return float32(x * SigmoidF(x))
	case GELU:
		return geluF(x)
	case GELUErf:
		return float32(float32(0.5*x) * (1 + erf(float32(x*0.70710678118654752440))))
	case GELUQuick:
		return float32(x * SigmoidF(float32(1.702*x)))
	case ReLU:
		return max(x, 0)
	case ReLU2:
		r := max(x, 0)
		return float32(r * r)
	case Sigmoid:
		return SigmoidF(x)
	case Tanh:
		return TanhF(x)
	case Softplus:
		return SoftplusF(x)
	case Exponential:
		return Exp(x)
	}
	return x
}
