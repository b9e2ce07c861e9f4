package sound

import (
	"bytes"
	"io"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
)

// flacStream is a FLAC file (RFC 9639).
type flacStream struct {
	i      Info
	bits   uint8 // of a sample, where a frame does not tell
	stream *flac.Stream
	mono   []float32
}

func openFLAC(b []byte) (stream, error) {
	s, err := flac.New(bytes.NewReader(b))
	if err != nil {
		return nil, damaged("FLAC", "its headers cannot be read: %v", err)
	}
	f := &flacStream{stream: s, bits: s.Info.BitsPerSample, i: Info{
		Format: "FLAC", SampleRate: int(s.Info.SampleRate), Channels: int(s.Info.NChannels), Frames: int64(s.Info.NSamples),
	}}
	if f.i.Frames == 0 { // the encoder wrote to a pipe
		f.i.Frames = lastFLACSample(b, s)
	}
	return f, plausible(f.i)
}

// flacTail is where the last frame begins: no frame is longer than its 65,535 samples of 32
// bits in 8 channels as they are, and tags may stand behind it.
const flacTail = 65_535*8*4 + 1<<16

// flacTries bounds the places there that look like frames: chance makes a hundred of them.
const flacTries = 10_000

// lastFLACSample finds the end of the last frame: each frame's header says which
// samples it holds.
func lastFLACSample(b []byte, s *flac.Stream) int64 {
	b = b[max(len(b)-flacTail, 0):]
	for end, tries := len(b), 0; end > 0 && tries < flacTries; {
		at := bytes.LastIndexByte(b[:end], 0xff)
		if at < 0 {
			break
		}
		end = at
		if at+1 < len(b) && b[at+1]&0xfc != 0xf8 {
			continue // the synchronisation has six bits more
		}
		tries++
		f, err := frame.New(bytes.NewReader(b[at:])) // checks the header's checksum
		if err != nil || f.Channels.Count() != int(s.Info.NChannels) || f.SampleRate != 0 && f.SampleRate != s.Info.SampleRate {
			continue
		}
		first := int64(f.Num)
		if f.HasFixedBlockSize {
			first *= int64(s.Info.BlockSizeMax)
		}
		return first + int64(f.BlockSize)
	}
	return 0
}

func (f *flacStream) info() Info { return f.i }

func (f *flacStream) next() ([]float32, error) {
	fr, err := f.stream.ParseNext() // checks the frame's checksum
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, damaged("FLAC", "a frame cannot be decoded: %v", err)
	}
	if len(fr.Subframes) != f.i.Channels {
		return nil, damaged("FLAC", "a frame has %d channels instead of %d", len(fr.Subframes), f.i.Channels)
	}
	bits := fr.BitsPerSample
	if bits == 0 {
		bits = f.bits
	}
	if bits < 1 || bits > 32 {
		return nil, damaged("FLAC", "it declares samples of %d bits", bits)
	}
	scale := 1 / (float32(int64(1)<<(bits-1)) * float32(f.i.Channels))
	f.mono = f.mono[:0]
	for i := range fr.Subframes[0].Samples {
		sum := float32(0)
		for _, sub := range fr.Subframes {
			sum += float32(sub.Samples[i])
		}
		f.mono = append(f.mono, sum*scale)
	}
	return f.mono, nil
}
