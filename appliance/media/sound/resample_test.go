package sound

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// resample pushes a sound in blocks of a size.
func resample(x []float32, rate, block int) []float32 {
	r := newResampler(rate, Info{SampleRate: rate, Frames: int64(len(x))}.Samples())
	for len(x) > 0 {
		n := min(block, len(x))
		_ = r.push(context.Background(), x[:n]) // which does not end
		x = x[n:]
	}
	out, _ := r.finish(context.Background())
	return out
}

// TestResamplerAgainstTheSum computes every output as one sum over all inputs.
func TestResamplerAgainstTheSum(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, rate := range []int{8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 96000, 44099, 15999, 7, 192000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			x := make([]float32, min(3000, max(20, rate/20)))
			for i := range x {
				x[i] = r.Float32() - 0.5
			}
			scale := cutoff * min(1, float64(Rate)/float64(rate))
			want := make([]float32, Info{SampleRate: rate, Frames: int64(len(x))}.Samples())
			for n := range want {
				sum := 0.0
				for k, v := range x {
					sum += float64(v) * kernel((float64(n)*float64(rate)/Rate-float64(k))*scale) * scale
				}
				want[n] = float32(sum)
			}
			bound := 2e-6
			if rate == Rate {
				want, bound = x, 0
			}
			for _, block := range []int{1, 7, 1000, 1 << 20} {
				near(t, resample(x, rate, block), want, bound)
			}
		})
	}
}

// level is the amplitude, in dB, of a tone after resampling, by correlation over the
// middle of the sound; rest is the level of everything else.
func level(rate int, pitch float64) (tone, rest float64) {
	x := make([]float32, rate/2)
	for i := range x {
		x[i] = float32(math.Sin(2 * math.Pi * pitch * float64(i) / float64(rate)))
	}
	y := resample(x, rate, 4096)
	y = y[1600 : len(y)-1600]
	var s, c, power float64
	for i, v := range y {
		a := 2 * math.Pi * pitch * float64(i) / Rate
		s += float64(v) * math.Sin(a)
		c += float64(v) * math.Cos(a)
	}
	n := float64(len(y))
	s, c = 2*s/n, 2*c/n
	for i, v := range y {
		a := 2 * math.Pi * pitch * float64(i) / Rate
		d := float64(v) - s*math.Sin(a) - c*math.Cos(a)
		power += d * d
	}
	return 10 * math.Log10(s*s+c*c), 10 * math.Log10(2*power/n+1e-20)
}

func TestPassBandAndAliases(t *testing.T) {
	for _, rate := range []int{44100, 48000, 22050, 44099} {
		for _, pitch := range []float64{20, 440, 3000, 6000, 7000} {
			tone, rest := level(rate, pitch)
			if math.Abs(tone) > 0.01 {
				t.Errorf("%d Hz: a tone of %g Hz comes out at %.4f dB", rate, pitch, tone)
			}
			if rest > -85 {
				t.Errorf("%d Hz: beside a tone of %g Hz there are %.1f dB", rate, pitch, rest)
			}
		}
		for _, pitch := range []float64{8100, 9000, 10500} {
			if pitch >= float64(rate)/2 {
				continue
			}
			x := make([]float32, rate/2)
			for i := range x {
				x[i] = float32(math.Sin(2 * math.Pi * pitch * float64(i) / float64(rate)))
			}
			y := resample(x, rate, 4096)
			power := 0.0
			for _, v := range y[1600 : len(y)-1600] {
				power += float64(v) * float64(v)
			}
			if alias := 10 * math.Log10(2*power/float64(len(y)-3200)); alias > -85 {
				t.Errorf("%d Hz: a tone of %g Hz leaves %.1f dB", rate, pitch, alias)
			}
		}
	}
	// From a lower rate: nothing above its own half.
	tone, rest := level(8000, 3000)
	if math.Abs(tone) > 0.01 || rest > -85 {
		t.Errorf("8000 Hz: a tone of 3000 Hz comes out at %.4f dB beside %.1f dB", tone, rest)
	}
}

func BenchmarkResample48k(b *testing.B) {
	x := make([]float32, 48000)
	for b.Loop() {
		resample(x, 48000, 4096)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "×realtime")
}
