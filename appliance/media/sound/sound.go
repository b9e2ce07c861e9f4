package sound

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
)

// stream is a sound that is being decoded.
type stream interface {
	info() Info
	// next gives the next samples, mixed to one channel and valid until the next
	// call, or io.EOF.
	next() ([]float32, error)
}

// open finds the kind of a file by its first bytes and reads its headers.
func open(data []byte) (s stream, err error) {
	defer contain(&err)
	switch {
	case len(data) >= 12 && (string(data[:4]) == "RIFF" || string(data[:4]) == "RF64") && string(data[8:12]) == "WAVE":
		return openWAV(data)
	case bytes.HasPrefix(data, []byte("fLaC")):
		return openFLAC(data)
	case bytes.HasPrefix(data, []byte("OggS")):
		return openOgg(data)
	case bytes.HasPrefix(data, []byte("ID3")), len(data) >= 4 && isMP3(data):
		return openMP3(data)
	}
	return nil, unsupported("sound", "it begins like none of the kinds that are read")
}

// contain makes a panic of a decoder an error about the file.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = damaged("sound", "the decoder fails: %v", r)
	}
}

// Inspect tells what a file says about itself and how long it is, without decoding
// it. It takes time for each frame or page of the file, not for each sample.
func Inspect(data []byte) (Info, error) {
	s, err := open(data)
	if err != nil {
		return Info{}, err
	}
	return s.info(), nil
}

// Decode decodes a sound of at most seconds to mono samples at Rate. Cancelling ctx
// ends it after the block at hand.
func Decode(ctx context.Context, data []byte, seconds float64) ([]float32, error) {
	s, err := open(data)
	if err != nil {
		return nil, err
	}
	info := s.info()
	if info.Seconds() > seconds {
		return nil, &Error{ErrTooLong, info.Format, fmt.Sprintf("it lasts %.1f s, the limit is %.1f s", info.Seconds(), seconds)}
	}
	r := newResampler(info.SampleRate, info.Samples())
	for left := info.Frames; left > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		block, err := nextOf(s)
		if err == io.EOF {
			return nil, damaged(info.Format, "it ends after %d of %d samples", info.Frames-left, info.Frames)
		}
		if err != nil {
			return nil, err
		}
		if int64(len(block)) > left {
			block = block[:left]
		}
		for i, x := range block {
			if x-x != 0 { // NaN, ±Inf
				return nil, damaged(info.Format, "sample %d is %g", info.Frames-left+int64(i), x)
			}
		}
		left -= int64(len(block))
		if err := r.push(ctx, block); err != nil {
			return nil, err
		}
	}
	return r.finish(ctx)
}

func nextOf(s stream) (block []float32, err error) {
	defer contain(&err)
	return s.next()
}

// mix averages the channels of interleaved samples, in place where there is one.
func mix(dst, src []float32, channels int) []float32 {
	if channels == 1 {
		return src
	}
	dst = dst[:0]
	for ; len(src) >= channels; src = src[channels:] {
		sum := float32(0)
		for _, x := range src[:channels] {
			sum += x
		}
		dst = append(dst, sum/float32(channels))
	}
	return dst
}

// headers that declare what cannot be are refused before anything is computed.
func plausible(i Info) error {
	switch {
	case i.SampleRate < 1 || i.SampleRate > maxRate:
		return damaged(i.Format, "it declares %d samples a second", i.SampleRate)
	case i.Channels < 1 || i.Channels > maxChannels:
		return damaged(i.Format, "it declares %d channels", i.Channels)
	case i.Frames < 0 || i.Frames > math.MaxInt64/maxRate:
		return damaged(i.Format, "it declares %d samples", i.Frames)
	case i.Frames == 0:
		return damaged(i.Format, "it holds no samples")
	}
	return nil
}
