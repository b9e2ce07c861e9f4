package sound

import (
	"context"
	"math"
	"sync"
)

// The low-pass of the resampler: a sinc under a Kaiser window. 48 zero crossings on
// each side at β = 9 keep 90 dB from 8.04 kHz on and are flat to 7.08 kHz (at half the
// amplitude at 0.945 of 8 kHz); the numbers are measured in resample_test.go.
const (
	crossings  = 48
	cutoff     = 0.945 // of the lower of the two Nyquist frequencies
	beta       = 9
	oversample = 1024    // points per zero crossing that the kernel is computed at
	tableBytes = 1 << 20 // of the taps of one ratio
)

// kernel is the low-pass at u zero crossings from its middle.
func kernel(u float64) float64 {
	if u = math.Abs(u); u >= crossings {
		return 0
	}
	window := bessel(beta*math.Sqrt(1-u/crossings*u/crossings)) / bessel(beta)
	if u == 0 {
		return window
	}
	return math.Sin(math.Pi*u) / (math.Pi * u) * window
}

// points is the kernel at oversample points per crossing. Between two of them it is
// straight to 4e-7.
var points = sync.OnceValue(func() []float64 {
	out := make([]float64, crossings*oversample+2)
	for i := range out {
		out[i] = kernel(float64(i) / oversample)
	}
	return out
})

// between is the kernel at u zero crossings from its middle, by the points around it.
func between(points []float64, u float64) float64 {
	u = math.Abs(u) * oversample
	i := int(u)
	if i >= len(points)-1 {
		return 0
	}
	return points[i] + (u-float64(i))*(points[i+1]-points[i])
}

// bessel is the modified Bessel function I₀.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-17*sum; k++ {
		term *= x / 2 / k * x / 2 / k
		sum += term
	}
	return sum
}

// resampler brings samples from one rate to Rate, in blocks. Output n is the filtered
// sound at the time of input n·from/to.
type resampler struct {
	from, to int     // the rates without common factors
	scale    float64 // zero crossings per input sample
	half     int     // taps on each side

	points []float64   // the kernel
	phases [][]float32 // taps of each of the to phases: [to, 2·half], nil if they are too many

	kept []float32 // inputs that are still needed
	base int       // index of kept[0] among the inputs; the sound begins at 0
	out  []float32
	want int // outputs in all
}

// newResampler makes a resampler that gives samples outputs.
func newResampler(rate, samples int) *resampler {
	divisor := gcd(rate, Rate)
	r := &resampler{from: rate / divisor, to: Rate / divisor, out: make([]float32, 0, samples), want: samples}
	if rate == Rate {
		return r
	}
	r.scale = cutoff * min(1, float64(Rate)/float64(rate))
	r.half = int(math.Ceil(crossings / r.scale))
	// Silence before the beginning, for the first outputs.
	r.base = -r.half
	r.kept = make([]float32, r.half, 4*r.half+2*blockFrames)
	r.points = points()
	if 4*r.to*2*r.half > tableBytes {
		return r
	}
	r.phases = make([][]float32, r.to)
	for p := range r.phases {
		r.phases[p] = make([]float32, 2*r.half)
		for j := range r.phases[p] {
			t := float64(p)/float64(r.to) + float64(r.half-1-j)
			r.phases[p][j] = float32(between(r.points, t*r.scale) * r.scale)
		}
	}
	return r
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// push takes the next inputs. A block of few samples a second makes many outputs: it ends
// early with ctx.
func (r *resampler) push(ctx context.Context, block []float32) error {
	if r.half == 0 {
		r.out = append(r.out, block...)
		return nil
	}
	r.kept = append(r.kept, block...)
	for len(r.out) < r.want {
		if len(r.out)%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		first, phase := r.taps()
		if first+2*r.half > len(r.kept) {
			break
		}
		r.out = append(r.out, r.filter(phase, r.kept[first:first+2*r.half]))
	}
	// What lies before the next output's taps is done with.
	first, _ := r.taps()
	if done := min(first, len(r.kept)); done > len(r.kept)/2 {
		r.kept = r.kept[:copy(r.kept, r.kept[done:])]
		r.base += done
	}
	return nil
}

// taps tells where the taps of the next output begin in kept, and its phase.
func (r *resampler) taps() (first, phase int) {
	at := int64(len(r.out)) * int64(r.from)
	return int(at/int64(r.to)) - r.half + 1 - r.base, int(at % int64(r.to))
}

// filter is one output: x: [2·half].
func (r *resampler) filter(phase int, x []float32) float32 {
	if r.phases != nil {
		return dot(x, r.phases[phase])
	}
	sum := 0.0
	t := float64(phase)/float64(r.to) + float64(r.half-1)
	for j, v := range x {
		sum += float64(v) * between(r.points, (t-float64(j))*r.scale)
	}
	return float32(sum * r.scale)
}

func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var a, b, c, d float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a += x[i] * y[i]
		b += x[i+1] * y[i+1]
		c += x[i+2] * y[i+2]
		d += x[i+3] * y[i+3]
	}
	for ; i < len(x); i++ {
		a += x[i] * y[i]
	}
	return (a + b) + (c + d)
}

// finish gives all outputs, with silence behind the end.
func (r *resampler) finish(ctx context.Context) ([]float32, error) {
	for silence := make([]float32, r.half+1); len(r.out) < r.want; {
		if err := r.push(ctx, silence); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}
