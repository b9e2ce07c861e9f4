package sound

import (
	"math"
	"testing"
)

// wavFile makes a WAV file with a chunk of odd length in front of its samples.
func wavFile(tag, channels, bits uint16, rate uint32, data []byte) []byte {
	align := channels * bits / 8
	f := le.AppendUint16(nil, tag)
	f = le.AppendUint32(le.AppendUint16(f, channels), rate)
	f = le.AppendUint16(le.AppendUint16(le.AppendUint32(f, rate*uint32(align)), align), bits)
	return chunks(f, uint32(len(data)), data)
}

func chunks(format []byte, declared uint32, data []byte) []byte {
	b := append([]byte("RIFF\x00\x00\x00\x00WAVELIST"), 3, 0, 0, 0, 'a', 'b', 'c', 0)
	b = append(le.AppendUint32(append(b, "fmt "...), uint32(len(format))), format...)
	return append(le.AppendUint32(append(b, "data"...), declared), data...)
}

func TestWAVEncodings(t *testing.T) {
	const half, quarter = 0.5, -0.25
	f32 := func(x float32) []byte { return le.AppendUint32(nil, math.Float32bits(x)) }
	f64 := func(x float64) []byte { return le.AppendUint64(nil, math.Float64bits(x)) }
	for _, tt := range []struct {
		name      string
		tag, bits uint16
		a, b      []byte
	}{
		{"u8", tagPCM, 8, []byte{192}, []byte{96}}, {"s16", tagPCM, 16, []byte{0, 0x40}, []byte{0, 0xe0}},
		{"s24", tagPCM, 24, []byte{0, 0, 0x40}, []byte{0, 0, 0xe0}}, {"s32", tagPCM, 32, []byte{0, 0, 0, 0x40}, []byte{0, 0, 0, 0xe0}},
		{"f32", tagFloat, 32, f32(half), f32(quarter)}, {"f64", tagFloat, 64, f64(half), f64(quarter)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got := source(t, wavFile(tt.tag, 1, tt.bits, 16000, append(append([]byte{}, tt.a...), tt.b...)))
			near(t, got, []float32{half, quarter}, 0)
			both := append(append([]byte{}, tt.a...), tt.b...)
			info, got := source(t, wavFile(tt.tag, 2, tt.bits, 16000, both))
			near(t, got, []float32{(half + quarter) / 2}, 0)
			if info != (Info{"WAV", 16000, 2, 1}) {
				t.Errorf("%+v", info)
			}
		})
	}
}

func TestWAVForms(t *testing.T) {
	samples := []byte{0, 0x40, 0, 0xe0}
	plain := le.AppendUint16(le.AppendUint16(le.AppendUint32(le.AppendUint32(le.AppendUint16(le.AppendUint16(nil, tagPCM), 1), 16000), 32000), 2), 16)
	extensible := append([]byte{0xfe, 0xff}, plain[2:]...)
	extensible = le.AppendUint32(le.AppendUint16(le.AppendUint16(extensible, 22), 16), 4)
	extensible = append(extensible, "\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
	for name, data := range map[string][]byte{
		"plain": chunks(plain, 4, samples), "extensible": chunks(extensible, 4, samples),
		"length unknown": chunks(plain, math.MaxUint32, samples), "length zero": chunks(plain, 0, samples),
		"length too large": chunks(plain, 4000, samples), "a chunk behind": append(chunks(plain, 4, samples), "LIST\x02\x00\x00\x00ab"...),
		"half a sample behind": chunks(plain, 5, append([]byte{0, 0x40, 0, 0xe0}, 7)),
	} {
		t.Run(name, func(t *testing.T) {
			_, got := source(t, data)
			near(t, got, []float32{0.5, -0.25}, 0)
		})
	}
	for name, data := range map[string][]byte{
		"no format": append([]byte("RIFF\x00\x00\x00\x00WAVEdata\x04\x00\x00\x00"), samples...), "alignment": chunks(append(plain[:12:12], 3, 0, 16, 0), 4, samples),
		"small format": chunks(plain[:14], 4, samples), "small extensible format": chunks(extensible[:30], 4, samples),
		"only a header": []byte("RIFF\x00\x00\x00\x00WAVE"),
	} {
		if _, err := Inspect(data); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
