package mel

import (
	"context"
	"math"
)

// WhisperFrames is the number of frames of one piece: 30 s.
const WhisperFrames = 3000

// tiny is 2⁻²⁴, below which the fronts of Whisper and NeMo take no logarithm.
const tiny = 1.0 / (1 << 24)

// WhisperPieces tells how many pieces of 30 s a sound is cut into: what is left
// behind the last whole piece is filled with silence, unless it is shorter than one
// frame's step.
func WhisperPieces(samples int) int {
	return max(1, (samples/Hop+WhisperFrames-1)/WhisperFrames)
}

// Whisper computes the front end of the Whisper encoders (Radford et al., 2022; the
// reference's tools/mtmd/mtmd-audio.cpp): frames of 400 samples around every 160th,
// mirrored at the beginning and followed by silence; power; Slaney's filters; log10,
// clipped to 8 below the loudest of the whole sound, and scaled to about [-1, 1]. It ends
// early with the context's error.
func Whisper(ctx context.Context, samples []float32, bins int) ([]Spectrogram, error) {
	const n = 400
	a := newAnalysis(n, 0, hann(n, true), slaney.filters(bins, n))
	a.floor, a.log = tiny, math.Log10

	pieces := WhisperPieces(len(samples))
	frames := pieces * WhisperFrames
	padded := mirror(samples, n/2)
	// Three frames behind the last piece can still reach samples; the loudest of all
	// counts.
	rows := make([]float32, (frames+3)*bins)
	loudest := math.Log10(tiny)
	for t := range frames + 3 {
		if err := due(ctx, t); err != nil {
			return nil, err
		}
		row := rows[t*bins : (t+1)*bins]
		a.row(padded, t*Hop, row)
		for _, x := range row {
			loudest = max(loudest, float64(x))
		}
	}
	for i, x := range rows {
		rows[i] = float32((max(float64(x), loudest-8) + 4) / 4)
	}
	out := make([]Spectrogram, pieces)
	for i := range out {
		size := WhisperFrames * bins
		out[i] = Spectrogram{Frames: WhisperFrames, Bins: bins, Rows: rows[i*size : (i+1)*size : (i+1)*size]}
	}
	return out, nil
}

// mirror puts n samples in front of the first, which it reflects. Where the sound is
// too short for that, silence is reflected.
func mirror(samples []float32, n int) []float32 {
	padded := make([]float32, n+max(len(samples), n+1))
	copy(padded[n:], samples)
	for i := range n {
		padded[n-1-i] = padded[n+1+i]
	}
	return padded
}
