package film

import (
	"bytes"
	"fmt"
	"math"
	"time"
)

// soundRate is the rate of sound as models hear it.
const soundRate = 16000 // Hz

// SoundInfo is what the headers of a sound say that only Engine decodes: a track of a
// film, AAC, Vorbis or AMR.
type SoundInfo struct {
	Codec    string
	Duration time.Duration
}

// Samples is the number of samples that Engine.Sound gives.
func (i SoundInfo) Samples() int { return int(math.Round(i.Duration.Seconds() * soundRate)) }

// DescribeSound reads the headers of a sound and holds its length against the limit.
func DescribeSound(data []byte, l Limits) (SoundInfo, error) {
	info, err := describeSound(data)
	if err != nil {
		return SoundInfo{}, fmt.Errorf("film: %w", err)
	}
	return SoundOf(info.Codec, info.Duration, l)
}

// SoundOf is a sound of which somebody else has read the headers, held against the limit.
func SoundOf(codec string, length time.Duration, l Limits) (info SoundInfo, err error) {
	info = SoundInfo{Codec: codec, Duration: length}
	most := l.or(DefaultLimits()).Duration
	switch {
	case info.Codec == "":
		err = damaged("it has no sound")
	case info.Duration <= 0:
		err = damaged("its sound has no length")
	case info.Duration > most:
		err = fmt.Errorf("%w: it lasts %.0f s, the limit is %.0f s", ErrTooLarge, info.Duration.Seconds(), most.Seconds())
	}
	if err != nil {
		return SoundInfo{}, fmt.Errorf("film: %w", err)
	}
	return info, nil
}

func describeSound(b []byte) (SoundInfo, error) {
	switch {
	case bytes.HasPrefix(b, []byte("OggS")):
		return describeVorbis(b)
	case bytes.HasPrefix(b, []byte("#!AMR-WB\n")):
		return describeAMR(b[9:], "AMR-WB", amrWideSizes[:])
	case bytes.HasPrefix(b, []byte("#!AMR\n")):
		return describeAMR(b[6:], "AMR", amrSizes[:])
	case len(b) >= 7 && b[0] == 0xff && b[1]&0xf6 == 0xf0:
		return describeADTS(b)
	}
	info, err := describe(b)
	return SoundInfo{Codec: info.AudioCodec, Duration: info.sound}, err
}

// describeVorbis reads the identification header and, for the length, the position of
// the last page (Vorbis I, section 4.2.2 and A.2).
func describeVorbis(b []byte) (SoundInfo, error) {
	i := SoundInfo{Codec: "Vorbis"}
	at := bytes.Index(b[:min(len(b), 512)], []byte("\x01vorbis"))
	if at < 0 {
		return i, fmt.Errorf("%w: an Ogg file without Vorbis", ErrUnsupported)
	}
	if len(b) < at+16 {
		return i, ErrShort
	}
	rate := le.Uint32(b[at+12:])
	last := bytes.LastIndex(b, []byte("OggS"))
	if rate == 0 || rate > 1<<20 {
		return i, damaged("it has %d samples a second", rate)
	}
	if len(b) < last+27 {
		return i, ErrShort
	}
	if position := int64(le.Uint64(b[last+6:])); position > 0 {
		i.Duration = duration(float64(position) / float64(rate))
	}
	return i, nil
}

// Bytes of the frames of 20 ms of AMR, behind the byte that names their kind (RFC 4867).
var (
	amrSizes     = [16]int{12, 13, 15, 17, 19, 20, 26, 31, 5, 6, 5, 5}
	amrWideSizes = [16]int{17, 23, 32, 36, 40, 46, 50, 58, 60, 5}
)

func describeAMR(b []byte, codec string, sizes []int) (SoundInfo, error) {
	frames := 0
	for at := 0; at < len(b); frames++ {
		at += 1 + sizes[b[at]>>3&15]
		if at > len(b) {
			return SoundInfo{}, ErrShort
		}
	}
	return SoundInfo{Codec: codec, Duration: time.Duration(frames) * 20 * time.Millisecond}, nil
}

// describeADTS walks the frames of raw AAC (ISO/IEC 14496-3, 1.A.2).
func describeADTS(b []byte) (SoundInfo, error) {
	rates := [16]int{96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350}
	i, seconds := SoundInfo{Codec: "AAC"}, 0.0
	for len(b) > 0 {
		if len(b) < 7 {
			return i, ErrShort
		}
		size, rate := int(b[3]&3)<<11|int(b[4])<<3|int(b[5])>>5, rates[b[2]>>2&15]
		if b[0] != 0xff || b[1]&0xf6 != 0xf0 || size < 7 || rate == 0 {
			return i, damaged("a frame is expected %d bytes before its end", len(b))
		}
		if size > len(b) {
			return i, ErrShort
		}
		seconds += float64(1024*(1+int(b[6]&3))) / float64(rate)
		b = b[size:]
	}
	i.Duration = duration(seconds)
	return i, nil
}
