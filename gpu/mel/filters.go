package mel

import "math"

// filter is one triangle: weights for the bins of a spectrum from the first on.
type filter struct {
	first   int
	weights []float64
}

// scale is a scale of pitch, as a map from Hz to mel and back.
type scale struct {
	mel, hertz func(float64) float64
	area       bool // triangles of equal area instead of equal height
}

// htk is the scale of the Hidden Markov Model Toolkit (HTK Book, section 5.4).
var htk = scale{
	mel:   func(f float64) float64 { return 2595 * math.Log10(1+f/700) },
	hertz: func(m float64) float64 { return 700 * (math.Pow(10, m/2595) - 1) },
}

// slaney is the scale of the Auditory Toolbox (Slaney, 1998), which librosa and
// Whisper use: linear up to 1 kHz, logarithmic above.
var slaney = scale{
	mel: func(f float64) float64 {
		if f < 1000 {
			return f * 3 / 200
		}
		return 15 + math.Log(f/1000)*27/math.Log(6.4)
	},
	hertz: func(m float64) float64 {
		if m < 15 {
			return m * 200 / 3
		}
		return 1000 * math.Exp((m-15)*math.Log(6.4)/27)
	},
	area: true,
}

// filters makes a bank of triangles from 0 to Rate/2 for spectra of n samples.
func (s scale) filters(bins, n int) []filter {
	edges := make([]float64, bins+2) // Hz
	top := s.mel(Rate / 2)
	for i := range edges {
		edges[i] = s.hertz(top * float64(i) / float64(bins+1))
	}
	bank := make([]filter, bins)
	for i := range bank {
		left, centre, right := edges[i], edges[i+1], edges[i+2]
		height := 1.0
		if s.area {
			height = 2 / (right - left)
		}
		for k := range n/2 + 1 {
			f := float64(k) * Rate / float64(n)
			w := min((f-left)/(centre-left), (right-f)/(right-centre))
			if w <= 0 {
				continue
			}
			if bank[i].weights == nil {
				bank[i].first = k
			}
			// The reference keeps its bank in float32.
			bank[i].weights = append(bank[i].weights, float64(float32(w*height)))
		}
	}
	return bank
}

// apply is the sum of a spectrum under the triangle.
func (f filter) apply(spectrum []float64) float64 {
	sum := 0.0
	for i, x := range spectrum[f.first : f.first+len(f.weights)] {
		sum += x * f.weights[i]
	}
	return sum
}

// hann is a Hann window of n samples that repeats after n (periodic), or that ends
// as it begins (symmetric). It is kept in float32, as everyone's is: the smallest
// values of a spectrum are the window's rounding (5e-4 of a logarithm).
func hann(n int, periodic bool) []float32 {
	w := make([]float32, n)
	period := float64(n - 1)
	if periodic {
		period = float64(n)
	}
	for i := range w {
		w[i] = float32(0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/period))
	}
	return w
}
