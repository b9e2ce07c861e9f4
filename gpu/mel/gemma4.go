package mel

import (
	"context"
	"math"
)

const (
	gemma4Window = 320              // samples: 20 ms
	gemma4Frame  = 512              // samples, the window and silence
	gemma4Piece  = 30 * Rate        // samples that one run of the encoder takes
	gemma4Before = gemma4Window / 2 // samples of silence in front of a piece
)

// Gemma4Frames tells the frames of each piece of 30 s that a sound is cut into.
func Gemma4Frames(samples int) []int {
	var frames []int
	for ; samples > 0; samples -= gemma4Piece {
		n := max(min(samples, gemma4Piece), gemma4Window+1-gemma4Before)
		// A frame needs its window and one sample more.
		frames = append(frames, (n+gemma4Before-gemma4Window-1)/Hop+1)
	}
	return frames
}

// Gemma4 computes the front end of Gemma 4's audio encoder, for each piece of 30 s
// on its own: windows of 320 samples at the beginning of frames of 512, magnitude,
// HTK's filters, and the natural logarithm of what is above 0.001. It ends early with the
// context's error.
func Gemma4(ctx context.Context, samples []float32, bins int) ([]Spectrogram, error) {
	a := newAnalysis(gemma4Frame, 0, hann(gemma4Window, true), htk.filters(bins, gemma4Frame))
	a.magnitude, a.floor, a.log = true, 0.001, math.Log

	var out []Spectrogram
	for i, frames := range Gemma4Frames(len(samples)) {
		piece := samples[i*gemma4Piece : min((i+1)*gemma4Piece, len(samples))]
		s := Spectrogram{Frames: frames, Bins: bins, Rows: make([]float32, frames*bins)}
		for t := range frames {
			if err := due(ctx, t); err != nil {
				return nil, err
			}
			a.row(piece, t*Hop-gemma4Before, s.Rows[t*bins:(t+1)*bins])
		}
		out = append(out, s)
	}
	return out, nil
}
