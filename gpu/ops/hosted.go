package ops

import "math"

// ALiBiSlopes are the slopes of attention with linear biases (arXiv:2108.12409) for
// each head, computed once on the host: head h of n = 2^⌊log2 heads⌋ has
// 2^(−largest·(h+1)/n), and the heads beyond n take the odd steps of twice as many
// heads. It is nil when largest is 0.
func ALiBiSlopes(heads int, largest float32) []float32 {
	if largest == 0 {
		return nil
	}
	n := 1
	for n*2 <= heads {
		n *= 2
	}
	slopes := make([]float32, heads)
	for h := range slopes {
		step := float64(h+1) / float64(n)
		if h >= n {
			step = float64(2*(h-n)+1) / float64(2*n)
		}
		slopes[h] = float32(hostExp2(-float64(largest) * step))
	}
	return slopes
}

// HeadDecays are 2^(−8·(h+1)/heads) for each head h, the decay rates of lightning
// attention (arXiv:2401.04658), computed once on the host.
func HeadDecays(heads int) []float32 {
	out := make([]float32, heads)
	for h := range out {
		out[h] = float32(hostExp2(-8 * float64(h+1) / float64(heads)))
	}
	return out
}

// At is the factor of a row at position pos, rounded once.
func (o *PosScale) At(pos int) float32 {
	steps := math.Floor((float64(pos) + float64(o.Offset)) / float64(o.Floor))
	return float32(float64(hostLn(steps+1)*float64(o.Scale)) + 1)
}
