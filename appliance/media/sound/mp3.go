package sound

import (
	"io"

	"github.com/hajimehoshi/go-mp3"
)

// decoderDelay is the delay of every layer III decoder, in samples: what encoders add
// to their own delay in the LAME header counts from there (the transform's 528, and 1).
const decoderDelay = 529

// mp3Stream is an MPEG-1 or MPEG-2 layer III stream.
type mp3Stream struct {
	i       Info
	frames  *mp3Reader
	decoder *mp3.Decoder
	skip    int // samples of the encoder's and the decoder's delay that are left to drop
	bytes   [4 * 1152]byte
	mono    []float32
}

// openMP3 walks the frames of a stream. Tags before, behind and between them are
// skipped, as decoders do.
func openMP3(b []byte) (stream, error) {
	first, _, err := firstMP3(b)
	if err != nil {
		return nil, err
	}
	if first.version == mpeg25 {
		return nil, unsupported("MP3", "it is MPEG-2.5")
	}
	s, err := walkMP3(b)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// walkMP3 finds the frames of a stream and how long it lasts.
func walkMP3(b []byte) (*mp3Stream, error) {
	first, at, err := firstMP3(b)
	if err != nil {
		return nil, err
	}
	delay, padding := 0, 0
	if d, p, count, ok := infoFrame(b[at : at+first.size]); ok {
		at += first.size // this frame holds no sound
		if count > 0 {
			delay, padding = d+decoderDelay, max(0, p-decoderDelay)
		}
	}
	s := &mp3Stream{frames: &mp3Reader{data: b}}
	total := int64(0)
	for at < len(b) {
		h, ok := parseMP3(b[at:])
		if !ok || !h.like(first) {
			if at = nextMP3(b, at, first); at < 0 {
				break
			}
			continue
		}
		if at+h.size > len(b) {
			break // cut short; the frames before are whole
		}
		s.frames.places = append(s.frames.places, place{at, h.size})
		total += int64(h.samples)
		at += h.size
	}
	s.skip = delay
	// The decoder always gives two channels.
	s.i = Info{Format: "MP3", SampleRate: first.rate, Channels: first.channels, Frames: max(0, total-int64(delay+padding))}
	return s, plausible(s.i)
}

func (s *mp3Stream) info() Info { return s.i }

func (s *mp3Stream) next() ([]float32, error) {
	if s.decoder == nil {
		d, err := mp3.NewDecoder(s.frames)
		if err != nil {
			return nil, damaged("MP3", "%v", err)
		}
		s.decoder = d
	}
	for {
		n, err := io.ReadFull(s.decoder, s.bytes[:])
		if n == 0 {
			if err == io.EOF {
				return nil, io.EOF
			}
			return nil, damaged("MP3", "%v", err)
		}
		s.mono = s.mono[:0]
		for i := 0; i+4 <= n; i += 4 {
			left, right := int16(le.Uint16(s.bytes[i:])), int16(le.Uint16(s.bytes[i+2:]))
			s.mono = append(s.mono, (float32(left)+float32(right))/(1<<16))
		}
		drop := min(s.skip, len(s.mono))
		s.skip -= drop
		if drop < len(s.mono) {
			return s.mono[drop:], nil
		}
	}
}

// place is where a frame lies in the file.
type place struct{ at, size int }

// mp3Reader reads the frames of a stream without what lies between them. It can not
// seek, so that the decoder does not walk the stream a second time.
type mp3Reader struct {
	data   []byte
	places []place
}

func (r *mp3Reader) Read(p []byte) (int, error) {
	if len(r.places) == 0 {
		return 0, io.EOF
	}
	f := &r.places[0]
	n := copy(p, r.data[f.at:f.at+f.size])
	if f.at, f.size = f.at+n, f.size-n; f.size == 0 {
		r.places = r.places[1:]
	}
	return n, nil
}
