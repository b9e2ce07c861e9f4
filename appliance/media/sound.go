package media

import (
	"errors"
	"fmt"
)

// Bounds of what a header may declare about a sound.
const (
	maxChannels = 32
	maxRate     = 768_000 // Hz
)

// WAV format tags (RFC 2361 and WAVEFORMATEXTENSIBLE).
const (
	wavPCM        = 1
	wavFloat      = 3
	wavALaw       = 6
	wavMuLaw      = 7
	wavExtensible = 0xFFFE
)

// wavFile walks the chunks of a RIFF WAVE file up to its samples.
func wavFile(b []byte) (header, error) {
	var bytesPerSecond int64
	for i := 12; ; {
		if len(b)-i < 8 {
			return header{}, errShort
		}
		kind, n := string(b[i:i+4]), int64(le.Uint32(b[i+4:]))
		rest := int64(len(b) - i - 8)
		i += 8
		switch kind {
		case "fmt ":
			if n > rest {
				return header{}, errShort
			}
			var err error
			if bytesPerSecond, err = wavFormat(b[i : i+int(n)]); err != nil {
				return header{}, err
			}
		case "data":
			if bytesPerSecond == 0 {
				return header{}, errors.New("its samples come before their format")
			}
			if rest == 0 {
				return header{}, errShort
			}
			// A writer that could not seek leaves the length 0 or 2^32-1.
			return header{seconds: float64(min(n, rest)) / float64(bytesPerSecond)}, nil
		}
		if n += n & 1; n > rest {
			return header{}, errShort
		}
		i += int(n)
	}
}

// wavFormat checks a format chunk and gives the bytes of one second.
func wavFormat(f []byte) (int64, error) {
	if len(f) < 16 {
		return 0, errors.New("its format chunk is too small")
	}
	tag, channels, rate := le.Uint16(f), int64(le.Uint16(f[2:])), int64(le.Uint32(f[4:]))
	align, bits := int64(le.Uint16(f[12:])), int64(le.Uint16(f[14:]))
	if tag == wavExtensible {
		if len(f) < 40 {
			return 0, errors.New("its extensible format chunk is too small")
		}
		tag = le.Uint16(f[24:]) // the first half-word of the sub-format
	}
	legal := false
	switch tag {
	case wavPCM:
		legal = bits == 8 || bits == 16 || bits == 24 || bits == 32
	case wavFloat:
		legal = bits == 32 || bits == 64
	case wavALaw, wavMuLaw:
		legal = bits == 8
	}
	switch {
	case !legal:
		return 0, unread(fmt.Sprintf("a WAV of format %d with %d bits", tag, bits))
	case channels < 1 || channels > maxChannels:
		return 0, fmt.Errorf("it declares %d channels", channels)
	case rate < 1 || rate > maxRate:
		return 0, fmt.Errorf("it declares %d samples a second", rate)
	case align != channels*bits/8:
		return 0, fmt.Errorf("it declares %d bytes for %d channels of %d bits", align, channels, bits)
	}
	return rate * align, nil
}

// flacHeader reads STREAMINFO (RFC 9639, section 8.2).
func flacHeader(b []byte) (header, error) {
	if len(b) < 42 {
		return header{}, errShort
	}
	if b[4]&0x7f != 0 || be.Uint32(b[4:])&0xffffff != 34 {
		return header{}, errors.New("it does not begin with STREAMINFO")
	}
	packed := be.Uint64(b[18:]) // rate 20 bits, channels-1 3, bits-1 5, samples 36
	rate := packed >> 44
	if rate == 0 {
		return header{}, errors.New("it declares no sample rate")
	}
	return header{seconds: float64(packed&(1<<36-1)) / float64(rate)}, nil
}
