package sampling

import (
	"math"
	"testing"
)

func TestWeightIsExp(t *testing.T) {
	worst, at := 0.0, 0.0
	for s := 0.0; s < maxSteps; s += 0.37 {
		want := math.Exp(-s * natsPerStep)
		if e := math.Abs(weight(s)/want - 1); e > worst {
			worst, at = e, s
		}
	}
	if worst > 4e-9 {
		t.Errorf("largest relative error %g at %g steps: got %g, want %g", worst, at, weight(at), math.Exp(-at*natsPerStep))
	}
	for _, c := range []struct{ t, want float64 }{
		{0, 1}, {-5, 1}, {math.Inf(-1), 1}, {octaveSteps, 0.5}, {10 * octaveSteps, 1.0 / 1024},
		{maxSteps, 0}, {math.Inf(1), 0}, {math.NaN(), 0},
	} {
		if got := weight(c.t); got != c.want {
			t.Errorf("weight(%g) = %g, want %g", c.t, got, c.want)
		}
	}
}

const weightBits = 0xdb9a23295d340be

// TestWeightBits pins bits, so that a compiler or machine that rounds otherwise is
// found.
func TestWeightBits(t *testing.T) {
	h := uint64(14695981039346656037)
	for s := 0.0; s < maxSteps; s += 0.731 {
		h = (h ^ math.Float64bits(weight(s))) * 1099511628211
	}
	if h != weightBits {
		t.Errorf("bits of weights hash to %#x, want %#x", h, uint64(weightBits))
	}
}
