package mel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

const testdata = "../encoder/testdata"

// sound reads one of the recorded sounds: 44 bytes of header, 16-bit samples.
func sound(t *testing.T, name string) []float32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testdata, "media", name))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, (len(b)-44)/2)
	for i := range out {
		out[i] = float32(int16(binary.LittleEndian.Uint16(b[44+2*i:]))) / 32768
	}
	return out
}

func golden(t *testing.T, name string) []float32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testdata, "intermediates", name))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// compare fails with the largest difference and where it is.
func compare(t *testing.T, got, want []float32, bound float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	worst, at := -1.0, 0
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); d > worst || d != d {
			worst, at = d, i
		}
	}
	if !(worst <= bound) {
		t.Errorf("largest difference %g at %d: %g, want %g; bound %g", worst, at, got[at], want[at], bound)
	}
}

// turned gives [bins, frames] of the first frames of a spectrogram.
func turned(s Spectrogram, frames int) []float32 {
	out := make([]float32, 0, frames*s.Bins)
	for b := range s.Bins {
		for f := range frames {
			out = append(out, s.Rows[f*s.Bins+b])
		}
	}
	return out
}

func TestAgainstTheIntermediates(t *testing.T) {
	for _, clip := range []string{"a", "b"} {
		samples := sound(t, "aud-"+clip+".wav")
		for _, bins := range []int{80, 128} {
			t.Run(fmt.Sprintf("whisper%d/%s", bins, clip), func(t *testing.T) {
				pieces := whisper(samples, bins)
				if len(pieces) != 1 || pieces[0].Frames != WhisperFrames || len(pieces[0].Rows) != WhisperFrames*bins {
					t.Fatalf("%d pieces, the first of %d frames", len(pieces), pieces[0].Frames)
				}
				compare(t, turned(pieces[0], 200), golden(t, fmt.Sprintf("whisper%d.%s.f32", bins, clip)), 1e-4)
			})
		}
		t.Run("gemma4/"+clip, func(t *testing.T) {
			pieces := gemma4(samples, 128)
			if len(pieces) != 1 {
				t.Fatalf("%d pieces", len(pieces))
			}
			compare(t, pieces[0].Rows, golden(t, "gemma4mel."+clip+".f32"), 1e-4)
		})
	}
}

func TestFiltersAgainstTheIntermediates(t *testing.T) {
	for _, tt := range []struct {
		name    string
		s       scale
		bins, n int
	}{{"slaney-80-400", slaney, 80, 400}, {"htk-128-512", htk, 128, 512}} {
		t.Run(tt.name, func(t *testing.T) {
			var got []float32
			for _, f := range tt.s.filters(tt.bins, tt.n) {
				row := make([]float32, tt.n/2+1)
				for i, w := range f.weights {
					row[f.first+i] = float32(w)
				}
				got = append(got, row...)
			}
			compare(t, got, golden(t, "melfilters-"+tt.name+"-16000.f32"), 1e-6)
		})
	}
}

func TestPowerAgainstTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 4, 6, 14, 50, 66, 320, 400, 512, 2 * 49 * 11} {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.Float64() - 0.5
		}
		got := make([]float64, n/2+1)
		newFFT(n).power(x, got)
		for k := range got {
			var sum complex128
			for i, v := range x {
				sum += complex(v, 0) * unit(i*k%n, n)
			}
			want := cmplx.Abs(sum) * cmplx.Abs(sum)
			if math.Abs(got[k]-want) > 1e-12*float64(n) {
				t.Errorf("n %d, k %d: %g, want %g", n, k, got[k], want)
			}
		}
	}
}

// TestCountsAreThoseOfTheWork holds the closed forms against what is computed.
func TestCountsAreThoseOfTheWork(t *testing.T) {
	for _, n := range []int{1, 2, 160, 161, 200, 201, 319, 320, 321, 400, 16000, 479_999, 480_000, 480_001, 480_159, 480_160, 481_600} {
		samples := make([]float32, n)
		if got, want := len(whisper(samples, 4)), WhisperPieces(n); got != want {
			t.Errorf("%d samples: %d pieces of Whisper, WhisperPieces says %d", n, got, want)
		}
		want := Gemma4Frames(n)
		for i, s := range gemma4(samples, 4) {
			if s.Frames != want[i] || len(s.Rows) != 4*s.Frames || s.Frames < 1 {
				t.Errorf("%d samples: piece %d has %d frames, Gemma4Frames says %v", n, i, s.Frames, want)
			}
		}
		if s := NeMo(samples, 4); s.Frames != NeMoFrames(n) || len(s.Rows) != 4*s.Frames {
			t.Errorf("%d samples: %d frames of NeMo, NeMoFrames says %d", n, s.Frames, NeMoFrames(n))
		}
	}
	for n, want := range map[int]int{1: 1, 480_000: 1, 481_600: 2, 600 * Rate: 20, 601 * Rate: 21} {
		if got := WhisperPieces(n); got != want {
			t.Errorf("WhisperPieces(%d) = %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int][]int{24_000: {149}, 480_000: {2999}, 480_001: {2999, 1}} {
		if got := Gemma4Frames(n); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("Gemma4Frames(%d) = %v, want %v", n, got, want)
		}
	}
}

// TestWhisperClipsBelowTheLoudestOfAll: what is loud in one piece lifts the floor of
// the others.
func TestWhisperClipsBelowTheLoudestOfAll(t *testing.T) {
	samples := make([]float32, 31*Rate)
	for i := 30 * Rate; i < len(samples); i++ {
		samples[i] = float32(math.Sin(2 * math.Pi * 1000 * float64(i) / Rate))
	}
	pieces := whisper(samples, 80)
	loudest := float32(-9)
	for _, x := range pieces[1].Rows {
		loudest = max(loudest, x)
	}
	for i, x := range pieces[0].Rows[:1000*80] {
		if d := loudest - x; math.Abs(float64(d)-2) > 1e-6 {
			t.Fatalf("silence at %d is %g below the loudest, want 8/4", i, d)
		}
	}
	if quiet := whisper(make([]float32, 16000), 80)[0].Rows[0]; math.Abs(float64(quiet)-(math.Log10(tiny)+4)/4) > 1e-6 {
		t.Errorf("silence alone is %g", quiet)
	}
}

// TestNeMoAgainstTheDefinition computes one sound with plain sums in another order.
func TestNeMoAgainstTheDefinition(t *testing.T) {
	samples := sound(t, "aud-b.wav")[:3300]
	const bins = 128
	held := len(samples) / 160
	rows := make([]float64, 0, held*bins)
	bank := slaney.filters(bins, 512)
	for f := range held {
		spectrum := make([]float64, 257)
		for k := range spectrum {
			var sum complex128
			for i := range 400 {
				j := f*160 - 200 + i
				if j < 0 || j >= len(samples) {
					continue
				}
				x := samples[j]
				if j > 0 {
					x -= 0.97 * samples[j-1]
				}
				w := float32(0.5 * (1 - math.Cos(2*math.Pi*float64(i)/399)))
				sum += complex(float64(x*w), 0) * unit(i*k%512, 512)
			}
			spectrum[k] = cmplx.Abs(sum) * cmplx.Abs(sum)
		}
		for _, b := range bank {
			rows = append(rows, math.Log(max(b.apply(spectrum), tiny)))
		}
	}
	want := make([]float32, (held+1)*bins)
	for b := range bins {
		var sum, squares float64
		for f := range held {
			sum += rows[f*bins+b]
		}
		for f := range held {
			d := rows[f*bins+b] - sum/float64(held)
			squares += d * d
		}
		for f := range held {
			want[f*bins+b] = float32((rows[f*bins+b] - sum/float64(held)) / math.Sqrt(squares/float64(held-1)+1e-5))
		}
	}
	compare(t, NeMo(samples, bins).Rows, want, 1e-4)
}

func BenchmarkWhisper(b *testing.B) {
	samples := make([]float32, 30*Rate)
	for i := range samples {
		samples[i] = rand.Float32() - 0.5
	}
	for b.Loop() {
		whisper(samples, 128)
	}
	b.ReportMetric(30*float64(b.N)/b.Elapsed().Seconds(), "×realtime")
}

// whisper and gemma4 are the front ends for as long as they take.
func whisper(samples []float32, bins int) []Spectrogram {
	s, _ := Whisper(context.Background(), samples, bins)
	return s
}

func gemma4(samples []float32, bins int) []Spectrogram {
	s, _ := Gemma4(context.Background(), samples, bins)
	return s
}

// A front end stops once nobody waits: in the middle of a sound, too.
func TestFrontEndsStop(t *testing.T) {
	samples := make([]float32, 60*Rate)
	for name, run := range map[string]func(context.Context) ([]Spectrogram, error){
		"whisper": func(ctx context.Context) ([]Spectrogram, error) { return Whisper(ctx, samples, 80) },
		"gemma4":  func(ctx context.Context) ([]Spectrogram, error) { return Gemma4(ctx, samples, 80) },
	} {
		all := &counted{Context: context.Background(), left: -1}
		if s, err := run(all); err != nil || len(s) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		looks := -1 - all.left
		if looks < 60*Rate/Hop/256 {
			t.Errorf("%s looked %d times", name, looks)
		}
		for _, n := range []int{0, 1, looks / 2, looks - 1} {
			if s, err := run(&counted{Context: context.Background(), left: n}); !errors.Is(err, context.Canceled) || s != nil {
				t.Errorf("%s, cancelled at look %d: %v", name, n, err)
			}
		}
	}
}

// counted is a context that is cancelled after so many looks; below 0 it never is.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	c.left--
	if c.left == -1 {
		return context.Canceled
	}
	return nil
}
