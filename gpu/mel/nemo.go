package mel

import "math"

const (
	nemoWindow   = 400  // samples
	nemoFrame    = 512  // samples, the window in the middle
	nemoEmphasis = 0.97 // of the sample before that is taken off each sample
)

// NeMoFrames tells the frames of a sound. The last is silence by construction.
func NeMoFrames(samples int) int { return max(samples, 2*Hop)/Hop + 1 }

// NeMo computes the front end of NVIDIA NeMo's FastConformer encoders
// (AudioToMelSpectrogramPreprocessor with its defaults): pre-emphasis, symmetric
// windows of 400 samples in the middle of frames of 512 around every 160th sample,
// power, Slaney's filters, the natural logarithm, and each bin normalised over the
// frames that hold sound; the frames behind them are zero.
func NeMo(samples []float32, bins int) Spectrogram {
	a := newAnalysis(nemoFrame, (nemoFrame-nemoWindow)/2, hann(nemoWindow, false), slaney.filters(bins, nemoFrame))
	a.floor, a.log = tiny, math.Log

	emphasised := make([]float32, len(samples))
	prev := float32(0)
	for i, x := range samples {
		emphasised[i] = x - nemoEmphasis*prev
		prev = x
	}
	s := Spectrogram{Frames: NeMoFrames(len(samples)), Bins: bins}
	s.Rows = make([]float32, s.Frames*bins)
	held := s.Frames - 1 // frames that hold sound
	for t := range held {
		a.row(emphasised, t*Hop-nemoFrame/2, s.Rows[t*bins:(t+1)*bins])
	}
	normalise(s.Rows[:held*bins], bins)
	return s
}

// normalise brings each bin to mean 0 and deviation 1: rows: [frames, bins], at
// least two frames.
func normalise(rows []float32, bins int) {
	frames := float64(len(rows) / bins)
	for b := range bins {
		mean, variance := 0.0, 0.0
		for i := b; i < len(rows); i += bins {
			mean += float64(rows[i])
		}
		mean /= frames
		for i := b; i < len(rows); i += bins {
			d := float64(rows[i]) - mean
			variance += d * d
		}
		deviation := math.Sqrt(variance/(frames-1) + 1e-5)
		for i := b; i < len(rows); i += bins {
			rows[i] = float32((float64(rows[i]) - mean) / deviation)
		}
	}
}
