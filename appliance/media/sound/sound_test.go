package sound

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ganglion/gpu/cputime"
)

// tones are the sounds of testdata before they were encoded: 16-bit samples of one
// channel.
func tones(rate, channel int) []float32 {
	out := make([]float32, rate*3/10)
	pitch := [3]float64{313, 1100 + 200*float64(channel), 2750}
	for i := range out {
		t, x := float64(i)/float64(rate), 0.0
		for k, a := range [3]float64{0.3, 0.2, 0.1} {
			x += a * math.Sin(2*math.Pi*pitch[k]*t+float64(k+channel))
		}
		x *= 0.6 + 0.4*math.Sin(2*math.Pi*5*t)
		out[i] = float32(math.RoundToEven(x*32767)) / 32768
	}
	return out
}

// stereo is the mean of both channels of tones.
func stereo(rate int) []float32 {
	a, b := tones(rate, 0), tones(rate, 1)
	for i := range a {
		a[i] = (a[i] + b[i]) / 2
	}
	return a
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// source decodes a file at its own rate.
func source(t testing.TB, data []byte) (Info, []float32) {
	t.Helper()
	s, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	var out []float32
	for {
		block, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, block...)
	}
	if n := s.info().Frames; int64(len(out)) > n {
		out = out[:n]
	}
	return s.info(), out
}

// near fails where two sounds differ by more than a bound.
func near(t *testing.T, got, want []float32, bound float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d samples, want %d", len(got), len(want))
	}
	worst, at := 0.0, 0
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= worst) {
			worst, at = d, i
		}
	}
	if !(worst <= bound) {
		t.Errorf("largest difference %g at %d: %g, want %g; bound %g", worst, at, got[at], want[at], bound)
	}
}

func TestExactFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		info  Info
		want  []float32
		bound float64
	}{
		{"rf64.wav", Info{"WAV", 8000, 1, 2400}, tones(8000, 0), 0},
		{"s24.wav", Info{"WAV", 8000, 1, 2400}, tones(8000, 0), 0},
		{"u8.wav", Info{"WAV", 8000, 1, 2400}, tones(8000, 0), 1.0 / 128},
		{"alaw.wav", Info{"WAV", 8000, 1, 2400}, tones(8000, 0), 1.0 / 64},
		{"mulaw.wav", Info{"WAV", 8000, 1, 2400}, tones(8000, 0), 1.0 / 64},
		{"tones-44100-2.flac", Info{"FLAC", 44100, 2, 13230}, stereo(44100), 0},
		{"tones-24.flac", Info{"FLAC", 44100, 2, 13230}, stereo(44100), 0},
		{"tones-pipe.flac", Info{"FLAC", 44100, 2, 13230}, stereo(44100), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			info, got := source(t, file(t, tt.name))
			if info != tt.info {
				t.Errorf("%+v, want %+v", info, tt.info)
			}
			near(t, got, tt.want, tt.bound)
		})
	}
}

// TestG711 holds the tables against the values that ITU-T G.711 prints.
func TestG711(t *testing.T) {
	for _, tt := range []struct {
		got  float32
		want int
	}{
		{muLaw[0x00], -32124}, {muLaw[0x80], 32124}, {muLaw[0xff], 0}, {muLaw[0x7f], 0}, {muLaw[0xf0], 120}, {muLaw[0x70], -120},
		{aLaw[0xd5], 8}, {aLaw[0x55], -8}, {aLaw[0xaa], 32256}, {aLaw[0x2a], -32256}, {aLaw[0x80], 5504},
	} {
		if tt.got != float32(tt.want)/32768 {
			t.Errorf("%g, want %d", tt.got*32768, tt.want)
		}
	}
}

func TestLossyFilesLikeTheReference(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rate  int
		bound float64 // rms
	}{
		{"tones-44100-2.mp3", 44100, 5e-5}, {"tones-22050-1.mp3", 22050, 5e-5},
		{"tones-celt.opus", 48000, 2e-4}, {"tones-stereo.opus", 48000, 2e-4},
		// SILK is computed in floats here and in integers there, and its filters
		// remember: 46 dB below the tones, and in step with them.
		{"tones-silk.opus", 48000, 2e-3}, {"tones-hybrid.opus", 48000, 2e-3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			info, got := source(t, file(t, tt.name))
			raw := file(t, tt.name+".s16")
			if info.SampleRate != tt.rate || len(got) != len(raw)/2 {
				t.Fatalf("%+v with %d samples, want %d at %d Hz", info, len(got), len(raw)/2, tt.rate)
			}
			sum := 0.0
			for i, x := range got {
				d := float64(x) - float64(int16(binary.LittleEndian.Uint16(raw[2*i:])))/32768
				sum += d * d
			}
			if rms := math.Sqrt(sum / float64(len(got))); rms > tt.bound {
				t.Errorf("rms %g, want at most %g", rms, tt.bound)
			}
		})
	}
	// The encoder's delay stays where no header tells it.
	if info, got := source(t, file(t, "tones-noxing.mp3")); info.Frames%1152 != 0 || int64(len(got)) != info.Frames || info.Frames < 13230 {
		t.Errorf("%+v, %d samples", info, len(got))
	}
}

func TestWhatIsNotReadIsNamed(t *testing.T) {
	for name, want := range map[string]string{
		"tones.ogg": "sound: Ogg: it holds Vorbis", "tones-11025-1.mp3": "sound: MP3: it is MPEG-2.5",
		"adpcm.wav": "sound: WAV: its samples are of format 2 with 4 bits",
	} {
		_, err := Inspect(file(t, name))
		if !errors.Is(err, ErrUnsupported) || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if _, err := Inspect([]byte("hello, world")); !errors.Is(err, ErrUnsupported) {
		t.Errorf("text: %v", err)
	}
}

// all are the files that are read.
var all = []string{"alaw.wav", "rf64.wav", "s24.wav", "tones-44100-2.mp3", "tones-22050-1.mp3", "tones-noxing.mp3",
	"tones-44100-2.flac", "tones-pipe.flac", "tones-celt.opus", "tones-hybrid.opus", "tones-silk.opus", "tones-stereo.opus"}

func TestDecodeGivesWhatInspectSays(t *testing.T) {
	for _, name := range all {
		data := file(t, name)
		info, err := Inspect(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(context.Background(), data, 1)
		if err != nil || len(got) != info.Samples() {
			t.Errorf("%s: %d samples, %v; Inspect says %d", name, len(got), err, info.Samples())
		}
		if _, err := Decode(context.Background(), data, 0.2); !errors.Is(err, ErrTooLong) {
			t.Errorf("%s with a limit of 0.2 s: %v", name, err)
		}
	}
}

// TestDamage cuts every file at 20 places and turns bits over: it is an error of a
// kind, or a sound as long as the headers say; soon in any case.
func TestDamage(t *testing.T) {
	ctx := context.Background()
	try := func(what string, data []byte) {
		begin := cputime.Used()
		info, err := Inspect(data)
		got, err2 := Decode(ctx, data, 600)
		switch {
		case err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported):
			t.Errorf("%s: %v", what, err)
		case err == nil && err2 == nil && len(got) != info.Samples():
			t.Errorf("%s: %d samples, Inspect says %d", what, len(got), info.Samples())
		case err == nil && err2 != nil && !errors.As(err2, new(*Error)):
			t.Errorf("%s: %v", what, err2)
		}
		if took := cputime.Used() - begin; took > 2*time.Second {
			t.Errorf("%s took %v", what, took)
		}
	}
	for _, name := range all {
		data := file(t, name)
		for i := range 20 {
			cut := data[:i*len(data)/20]
			try(fmt.Sprintf("%s cut at %d/20", name, i), cut)
			bad := append([]byte(nil), data...)
			bad[(2*i+1)*len(bad)/40] ^= 1 << (i % 8)
			try(fmt.Sprintf("%s with bit %d of byte %d turned", name, i%8, (2*i+1)*len(bad)/40), bad)
		}
	}
	// The guard can fail: a frame of FLAC with a turned bit is never a sound.
	bad := file(t, "tones-44100-2.flac")
	bad[len(bad)/2] ^= 4
	if _, err := Decode(ctx, bad, 600); !errors.Is(err, ErrDamaged) {
		t.Errorf("a turned bit: %v", err)
	}
	if _, err := Decode(ctx, bad[:len(bad)/3], 600); !errors.Is(err, ErrDamaged) {
		t.Errorf("a third of a file: %v", err)
	}
}

// TestEndless: what would decode to hours is refused by its headers.
func TestEndless(t *testing.T) {
	flac := file(t, "tones-44100-2.flac")
	copy(flac[21:26], []byte{flac[21] | 0x0f, 0xff, 0xff, 0xff, 0xff}) // 2³⁶-1 samples
	wav := wavFile(tagPCM, 1, 8, 8000, make([]byte, 8<<20))
	page := func(flags byte, granule uint64, segments []byte, body []byte) []byte {
		b := append([]byte("OggS\x00"), flags)
		b = le.AppendUint32(le.AppendUint32(le.AppendUint32(le.AppendUint64(b, granule), 1), 0), 0)
		b = append(append(append(b, byte(len(segments))), segments...), body...)
		sum := uint32(0)
		for _, c := range b {
			sum = sum<<8 ^ oggTable[byte(sum>>24)^c]
		}
		le.PutUint32(b[22:], sum)
		return b
	}
	ogg := page(2, 0, []byte{19}, append([]byte("OpusHead\x01\x01"), 0, 0, 0x80, 0xbb, 0, 0, 0, 0, 0))
	ogg = append(ogg, page(0, 0, []byte{8}, []byte("OpusTags"))...)
	segments, body := make([]byte, 255), make([]byte, 255)
	for i := range segments {
		segments[i], body[i] = 1, 3<<3 // 60 ms of SILK in one byte
	}
	for range 1000 {
		ogg = append(ogg, page(0, 1<<62, segments, body)...)
	}
	mp3 := file(t, "tones-noxing.mp3")
	for len(mp3) < 16<<20 {
		mp3 = append(mp3, mp3...)
	}
	for name, data := range map[string][]byte{"flac": flac, "wav": wav, "ogg": ogg, "mp3": mp3} {
		begin := cputime.Used()
		_, err := Decode(context.Background(), data, 600)
		if !errors.Is(err, ErrTooLong) {
			t.Errorf("%s: %v", name, err)
		}
		if took := cputime.Used() - begin; took > time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func TestNothingToHear(t *testing.T) {
	for name, data := range map[string][]byte{
		"nil": nil, "wav": wavFile(tagPCM, 1, 16, 8000, nil), "half a frame": wavFile(tagPCM, 2, 16, 8000, make([]byte, 3)),
		"flac": file(t, "tones-44100-2.flac")[:42], "ogg": []byte("OggS"), "id3": []byte("ID3\x04\x00\x00\x00\x00\x00\x00"),
		"channels": wavFile(tagPCM, 0, 16, 8000, make([]byte, 8)), "rate": wavFile(tagPCM, 1, 16, 0, make([]byte, 8)),
		"not a number": wavFile(tagFloat, 1, 32, 8000, []byte{0, 0, 0xc0, 0x7f}),
	} {
		if _, err := Decode(context.Background(), data, 1); !errors.As(err, new(*Error)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Decode(ctx, file(t, "tones-celt.opus"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range all {
		data := file(f, name)
		f.Add(data[:min(1500, len(data))])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := Inspect(data)
		if err != nil {
			return
		}
		got, err := Decode(context.Background(), data, 2)
		if err == nil && len(got) != info.Samples() {
			t.Errorf("%d samples, Inspect says %d", len(got), info.Samples())
		}
		if err != nil && !errors.As(err, new(*Error)) {
			t.Error(err)
		}
	})
}
