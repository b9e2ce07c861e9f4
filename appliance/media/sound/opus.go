package sound

import (
	"bytes"
	"io"
	"math"

	"github.com/pion/opus"
)

// opusRate is the rate at which Ogg counts the samples of Opus, in Hz.
const opusRate = 48000

// opusStream is an Ogg file with Opus (RFC 7845).
type opusStream struct {
	i       Info
	packets packets
	decoder opus.Decoder
	gain    float32
	skip    int // samples of pre-skip that are left to drop
	queue   [][]byte
	out     []float32
	mono    []float32
}

// openOgg reads the headers of the first stream of an Ogg file, and walks its pages
// for its length.
func openOgg(b []byte) (stream, error) {
	s := &opusStream{packets: packets{rest: b}}
	_, head, ok, err := s.packets.next()
	if err != nil {
		return nil, err
	}
	if !ok || len(head) == 0 {
		return nil, damaged("Ogg", "its first page is cut short")
	}
	h := head[0]
	if !bytes.HasPrefix(h, []byte("OpusHead")) {
		return nil, unsupported("Ogg", "it holds %s", oggCodec(h))
	}
	if len(h) < 19 || h[8]>>4 != 0 {
		return nil, damaged("Ogg Opus", "its header is cut short or of version %d", h[min(8, len(h)-1)])
	}
	channels, family := int(h[9]), h[18]
	if family != 0 || channels > 2 {
		return nil, unsupported("Ogg Opus", "it has %d channels in family %d", channels, family)
	}
	s.skip = int(le.Uint16(h[10:]))
	s.gain = float32(math.Pow(10, float64(int16(le.Uint16(h[16:])))/256/20)) // dB in 8.8 bits
	s.i = Info{Format: "Ogg Opus", SampleRate: opusRate, Channels: channels}
	if err := s.tags(); err != nil {
		return nil, err
	}
	length, err := opusLength(s.packets)
	if err != nil {
		return nil, err
	}
	if length <= int64(s.skip) {
		return nil, damaged("Ogg Opus", "it ends before its sound")
	}
	s.i.Frames = length - int64(s.skip)
	if err := plausible(s.i); err != nil {
		return nil, err
	}
	if s.decoder, err = opus.NewDecoderWithOutput(opusRate, channels); err != nil {
		return nil, damaged("Ogg Opus", "%v", err)
	}
	return s, nil
}

// tags passes over the second packet, which may span pages. No other packet ends on
// its last page.
func (s *opusStream) tags() error {
	for {
		_, got, ok, err := s.packets.next()
		if err != nil {
			return err
		}
		if !ok {
			return damaged("Ogg Opus", "it ends before its sound")
		}
		if len(got) > 0 {
			return nil
		}
	}
}

// opusLength is the length of the packets that are left, at opusRate, without what the
// position of the last page cuts off.
func opusLength(p packets) (int64, error) {
	total, start := int64(0), int64(-1)
	for {
		page, got, ok, err := p.next()
		if err != nil {
			return 0, err
		}
		if !ok {
			return total, nil
		}
		for _, packet := range got {
			total += int64(opusDuration(packet))
		}
		if start < 0 && page.granule >= 0 && len(got) > 0 {
			start = max(0, page.granule-total) // a stream can be cut out of a longer one
		}
		if page.last && page.granule >= 0 && start >= 0 {
			total = min(total, max(0, page.granule-start))
		}
	}
}

// opusDuration is how many samples a packet holds at opusRate (RFC 6716, section 3.1).
func opusDuration(packet []byte) int {
	if len(packet) == 0 {
		return 0
	}
	var frame int
	switch config := packet[0] >> 3; {
	case config < 12: // SILK
		frame = [4]int{480, 960, 1920, 2880}[config&3]
	case config < 16: // hybrid
		frame = [2]int{480, 960}[config&1]
	default: // CELT
		frame = [4]int{120, 240, 480, 960}[config&3]
	}
	switch packet[0] & 3 {
	case 0:
		return frame
	case 1, 2:
		return 2 * frame
	}
	if len(packet) < 2 {
		return 0
	}
	return frame * int(packet[1]&0x3f)
}

// oggCodec names what the first packet of a stream announces.
func oggCodec(head []byte) string {
	for prefix, name := range map[string]string{"\x01vorbis": "Vorbis", "Speex   ": "Speex", "\x7fFLAC": "FLAC", "\x80theora": "Theora", "fishead\x00": "a skeleton"} {
		if bytes.HasPrefix(head, []byte(prefix)) {
			return name
		}
	}
	return "an unknown codec"
}

func (s *opusStream) info() Info { return s.i }

func (s *opusStream) next() ([]float32, error) {
	for {
		for len(s.queue) == 0 {
			_, got, ok, err := s.packets.next()
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, io.EOF
			}
			s.queue = got
		}
		packet := s.queue[0]
		s.queue = s.queue[1:]
		samples := opusDuration(packet)
		if samples == 0 || samples > 120*opusRate/1000 {
			return nil, damaged("Ogg Opus", "a packet holds %d samples", samples)
		}
		s.out = append(s.out[:0], make([]float32, samples*s.i.Channels)...)
		n, err := s.decoder.DecodeToFloat32(packet, s.out)
		if err != nil {
			return nil, damaged("Ogg Opus", "a packet cannot be decoded: %v", err)
		}
		if n != samples {
			return nil, damaged("Ogg Opus", "a packet of %d samples decodes to %d", samples, n)
		}
		s.mono = mix(s.mono, s.out, s.i.Channels)
		drop := min(s.skip, len(s.mono))
		s.skip -= drop
		if drop == len(s.mono) {
			continue
		}
		for i := range s.mono {
			s.mono[i] *= s.gain
		}
		return s.mono[drop:], nil
	}
}
