// Package sound turns the bytes of a sound file into what audio encoders hear: mono
// samples at 16 kHz.
//
// It reads WAV (RIFF, RF64) and the framing of MP3 and Ogg itself, and leaves the
// codecs to go-mp3, mewkiz/flac and pion/opus. How long a sound is follows from its
// headers and framing alone (Inspect), so that the tokens of a request are known, and
// a sound that is too long is refused, before anything is decoded. What a decoder
// returns is held to that length: encoder delay and padding are cut off, and a file
// that ends early is damaged.
//
// Decoding runs in blocks through the resampler: it holds the samples at 16 kHz and a
// few blocks more, whatever the file's rate. A panic in a decoder is an error about
// the file. The package imports nothing of ours, and its functions may be called at
// the same time.
package sound

import (
	"errors"
	"fmt"
)

// Rate is the sample rate of decoded sounds, in Hz.
const Rate = 16000

// Bounds of what a file may declare.
const (
	maxRate     = 768_000 // Hz
	maxChannels = 32
)

// What can be wrong with a file. Every error of this package is an *Error of one of
// these kinds, or the context's.
var (
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
	ErrTooLong     = errors.New("too long")
)

// Error tells what is wrong with a file.
type Error struct {
	Kind   error  // ErrDamaged, ErrUnsupported or ErrTooLong
	Format string // such as "WAV"
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("sound: %s: %s", e.Format, e.Reason) }

// Unwrap gives the kind.
func (e *Error) Unwrap() error { return e.Kind }

func damaged(format, reason string, args ...any) error {
	return &Error{ErrDamaged, format, fmt.Sprintf(reason, args...)}
}

func unsupported(format, reason string, args ...any) error {
	return &Error{ErrUnsupported, format, fmt.Sprintf(reason, args...)}
}

// Info is what a file says about itself.
type Info struct {
	Format     string // such as "WAV"
	SampleRate int    // Hz
	Channels   int
	Frames     int64 // samples of one channel
}

// Seconds is how long the sound lasts.
func (i Info) Seconds() float64 { return float64(i.Frames) / float64(i.SampleRate) }

// Samples is how many samples Decode returns: those at whole multiples of 1/Rate
// before the end.
func (i Info) Samples() int {
	return int((i.Frames*Rate + int64(i.SampleRate) - 1) / int64(i.SampleRate))
}
