// Package mel turns sound into the log-mel spectrograms that the audio encoders
// read: 16 kHz mono samples in, one row of bins per frame of 10 ms out.
//
// There is one front end per way in which models were trained: Whisper (Ultravox,
// Qwen2-Audio, Voxtral), Gemma 4, and NeMo (the FastConformer of LFM2-Audio). They
// differ in padding, window, scale of the filters and normalisation; each has a
// function that tells its number of frames from the number of samples alone, so
// that a request's tokens are known before anything is computed.
//
// Windows and windowed samples are float32, as in the reference; the sums behind them
// are made in float64, which differs from its float32 sums by far less than 1e-4 of a
// logarithm. The package imports nothing of ours. Its functions may be called at the same time.
package mel

// Rate is the sample rate that every front end expects, in Hz.
const Rate = 16000

// Hop is the distance between the beginnings of two frames, in samples (10 ms).
const Hop = 160

// Spectrogram is one piece of sound as an encoder reads it.
type Spectrogram struct {
	Frames, Bins int
	Rows         []float32 // [Frames, Bins]
}
