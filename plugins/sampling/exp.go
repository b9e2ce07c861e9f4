package sampling

import "math"

// Distances below the largest logit are measured in steps, 128 to a factor of two.
// The weight of a candidate t steps down is 2^(-t/128), taken as a tabled power for
// the whole part of t times a quadratic for the rest, which is at most half a step:
// the relative error stays below 4e-9.
const (
	stepBits    = 7
	octaveSteps = 1 << stepBits
	maxSteps    = 64 * octaveSteps // weights below 2^-64 count as zero

	stepsPerNat = octaveSteps / math.Ln2
	natsPerStep = math.Ln2 / octaveSteps

	// roundMagic, added to a number below 2^51, leaves it rounded to the nearest
	// whole number in the low bits of the sum.
	roundMagic = 3 << 51
)

// octave[j] holds the bits of 2^(j/octaveSteps). It is built from square roots and
// products, which IEEE 754 rounds in one way only.
var octave = func() (t [octaveSteps]uint64) {
	var root [stepBits]float64 // root[b] = 2^(2^b/octaveSteps)
	r := 2.0
	for b := stepBits - 1; b >= 0; b-- {
		r = math.Sqrt(r)
		root[b] = r
	}
	for j := range t {
		v := 1.0
		for b := range root {
			if j>>b&1 == 1 {
				v = float64(v * root[b])
			}
		}
		t[j] = math.Float64bits(v)
	}
	return t
}()

// weight returns the weight of a candidate t steps below the largest logit, 1 for
// 0 and above, 0 for maxSteps and below and for NaN. Conversions keep the compiler
// from fusing a multiply with an add, which would differ between machines.
func weight(t float64) float64 {
	if !(t < maxSteps) {
		return 0
	}
	t = -max(t, 0)
	m := float64(t + roundMagic)
	r := float64(t - float64(m-roundMagic))
	whole := math.Float64bits(m)
	w := math.Float64frombits(octave[whole%octaveSteps] + whole>>stepBits<<52)
	r = float64(r * (natsPerStep + float64(r*(natsPerStep*natsPerStep/2))))
	return w + float64(w*r)
}
