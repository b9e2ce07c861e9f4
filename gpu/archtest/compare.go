package archtest

import (
	"math"
	"slices"
)

// NMSE is Σ(a−b)²/Σb², in which the bounds of an Entry are.
func NMSE(got, want []float32) float64 {
	var d, s float64
	for i, w := range want {
		e := float64(got[i]) - float64(w)
		d += e * e
		s += float64(w) * float64(w)
	}
	return d / s
}

// SameBits tells whether two lists of numbers are the same to the bit.
func SameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
