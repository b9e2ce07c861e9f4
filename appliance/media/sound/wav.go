package sound

import (
	"encoding/binary"
	"io"
	"math"
)

// Format tags of WAVE files (RFC 2361 and WAVEFORMATEXTENSIBLE).
const (
	tagPCM        = 1
	tagFloat      = 3
	tagALaw       = 6
	tagMuLaw      = 7
	tagExtensible = 0xFFFE
)

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// wav is a RIFF WAVE file, or an RF64 file (EBU Tech 3306), which is one with sizes of
// 64 bits.
type wav struct {
	i     Info
	read  func([]byte) float32 // one sample
	width int                  // bytes of one sample
	data  []byte               // whole frames
	raw   []float32            // one block, interleaved
	mono  []float32
}

// blockFrames is how many frames a stream decodes at a time, where the file does not
// say.
const blockFrames = 4096

// openWAV walks the chunks up to the samples.
func openWAV(b []byte) (stream, error) {
	w := &wav{i: Info{Format: "WAV"}}
	var long int64 // size of the data chunk by ds64
	for at := int64(12); ; {
		if int64(len(b))-at < 8 {
			return nil, damaged("WAV", "it ends before its samples")
		}
		kind, n := string(b[at:at+4]), int64(le.Uint32(b[at+4:]))
		at += 8
		rest := int64(len(b)) - at
		switch kind {
		case "ds64":
			if n < 24 || n > rest {
				return nil, damaged("WAV", "its ds64 chunk is cut short")
			}
			long = int64(min(le.Uint64(b[at+8:]), math.MaxInt64))
		case "fmt ":
			if n > rest {
				return nil, damaged("WAV", "its format chunk is cut short")
			}
			if err := w.format(b[at : at+n]); err != nil {
				return nil, err
			}
		case "data":
			if w.read == nil {
				return nil, damaged("WAV", "its samples come before their format")
			}
			// A writer that could not seek leaves the length 0 or 2^32-1.
			if n == 0 || n == math.MaxUint32 {
				n = rest
				if long > 0 {
					n = min(long, rest)
				}
			}
			frame := int64(w.width * w.i.Channels)
			w.i.Frames = min(n, rest) / frame
			w.data = b[at : at+w.i.Frames*frame]
			return w, plausible(w.i)
		}
		if n += n & 1; n > rest { // chunks begin at even places
			return nil, damaged("WAV", "a chunk before its samples is cut short")
		}
		at += n
	}
}

// format reads a format chunk.
func (w *wav) format(f []byte) error {
	if len(f) < 16 {
		return damaged("WAV", "its format chunk is too small")
	}
	tag, bits, align := le.Uint16(f), int(le.Uint16(f[14:])), int(le.Uint16(f[12:]))
	w.i.Channels, w.i.SampleRate = int(le.Uint16(f[2:])), int(le.Uint32(f[4:]))
	if tag == tagExtensible {
		if len(f) < 40 {
			return damaged("WAV", "its extensible format chunk is too small")
		}
		tag = le.Uint16(f[24:]) // the first half-word of the sub-format
	}
	if w.read = encodings[encoding{tag, bits}]; w.read == nil {
		return unsupported("WAV", "its samples are of format %d with %d bits", tag, bits)
	}
	w.width = bits / 8
	w.i.Frames = 1
	if err := plausible(w.i); err != nil {
		return err
	}
	if align != w.width*w.i.Channels {
		return damaged("WAV", "it declares %d bytes for %d channels of %d bits", align, w.i.Channels, bits)
	}
	return nil
}

func (w *wav) info() Info { return w.i }

func (w *wav) next() ([]float32, error) {
	if len(w.data) == 0 {
		return nil, io.EOF
	}
	n := min(blockFrames*w.width*w.i.Channels, len(w.data))
	w.raw = w.raw[:0]
	for i := 0; i < n; i += w.width {
		w.raw = append(w.raw, w.read(w.data[i:]))
	}
	w.data = w.data[n:]
	w.mono = mix(w.mono, w.raw, w.i.Channels)
	return w.mono, nil
}

type encoding struct {
	tag  uint16
	bits int
}

// encodings are the ways in which samples are written, scaled to [-1, 1).
var encodings = map[encoding]func([]byte) float32{
	{tagPCM, 8}:  func(b []byte) float32 { return float32(int(b[0])-128) / (1 << 7) },
	{tagPCM, 16}: func(b []byte) float32 { return float32(int16(le.Uint16(b))) / (1 << 15) },
	{tagPCM, 24}: func(b []byte) float32 {
		return float32(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)) / (1 << 31)
	},
	{tagPCM, 32}:   func(b []byte) float32 { return float32(int32(le.Uint32(b))) / (1 << 31) },
	{tagFloat, 32}: func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) },
	{tagFloat, 64}: func(b []byte) float32 { return float32(math.Float64frombits(le.Uint64(b))) },
	{tagALaw, 8}:   func(b []byte) float32 { return aLaw[b[0]] },
	{tagMuLaw, 8}:  func(b []byte) float32 { return muLaw[b[0]] },
}

// aLaw and muLaw are the samples of ITU-T G.711, in 13 and 14 bits.
var aLaw, muLaw = func() (a, mu [256]float32) {
	for i := range 256 {
		x := i ^ 0x55
		magnitude := (x&0x0f)<<4 + 8
		if segment := x >> 4 & 7; segment > 0 {
			magnitude = (magnitude + 0x100) << (segment - 1)
		}
		if x&0x80 == 0 {
			magnitude = -magnitude
		}
		a[i] = float32(magnitude) / (1 << 15)

		x = ^i
		magnitude = ((x&0x0f)<<3+0x84)<<(x>>4&7) - 0x84
		if x&0x80 != 0 {
			magnitude = -magnitude
		}
		mu[i] = float32(magnitude) / (1 << 15)
	}
	return a, mu
}()
