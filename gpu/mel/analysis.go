package mel

import (
	"context"
	"math"
)

// analysis computes frames: a window, its spectrum, the sums under the triangles,
// and a logarithm.
type analysis struct {
	window    []float32 // at the place in the frame where it lies: [n]
	magnitude bool      // |X| instead of |X|²
	bank      []filter
	floor     float64 // smallest sum whose logarithm is taken
	log       func(float64) float64

	transform       *fft
	frame, spectrum []float64 // [n], [n/2+1]
}

// newAnalysis takes frames of n samples under a window that begins at sample offset
// of the frame.
func newAnalysis(n, offset int, window []float32, bank []filter) *analysis {
	a := &analysis{window: make([]float32, n), bank: bank, transform: newFFT(n), frame: make([]float64, n), spectrum: make([]float64, n/2+1)}
	copy(a.window[offset:], window)
	return a
}

// due is the context's error, looked for at every 256th frame: after some 10 ms of work.
func due(ctx context.Context, frame int) error {
	if frame%256 != 0 {
		return nil
	}
	return ctx.Err()
}

// row writes the bins of the frame that begins at sample at, which may lie before
// the first sample or behind the last: what is not there is silence.
func (a *analysis) row(samples []float32, at int, row []float32) {
	silent := true
	for i, w := range a.window {
		a.frame[i] = 0
		if j := at + i; j >= 0 && j < len(samples) {
			x := samples[j] * w
			a.frame[i] = float64(x)
			silent = silent && x == 0
		}
	}
	if silent { // padding is most of a short sound
		for i := range row {
			row[i] = float32(a.log(a.floor))
		}
		return
	}
	a.transform.power(a.frame, a.spectrum)
	if a.magnitude {
		for i, p := range a.spectrum {
			a.spectrum[i] = math.Sqrt(p)
		}
	}
	for i, f := range a.bank {
		row[i] = float32(a.log(max(f.apply(a.spectrum), a.floor)))
	}
}
