package ops

import "math"

// RoPETable holds the parameters of one rotary embedding; Angles computes its
// table once on the host, and every backend uses that table, because powers and
// repeated multiplication round differently from device to device.
type RoPETable struct {
	NRot    int       // rotated columns of a head (GGUF rope.dimension_count)
	Base    float64   // GGUF rope.freq_base
	Scale   float64   // 1/rope.scaling.factor; 1 = none
	Factors []float32 // [NRot/2] divisors of the frequencies, optional (rope_freqs)

	// Axes, when not nil, names for each of the NRot/2 pairs the axis of Batch.Rotary whose
	// position turns it: the sections of M-RoPE, the lines and columns of a picture. nil is
	// Batch.Pos for all.
	Axes []uint8
	// Period > 0 lets the frequencies begin again every Period pairs, as those of another
	// axis do in the towers of Qwen-VL: pair i has that of i mod Period in a rotation of
	// 2·Period columns.
	Period int

	// YaRN (arXiv:2309.00071), on when OriginalContext > 0 and YaRN is set: low
	// dimensions keep their angle, high ones are interpolated by Scale.
	YaRN               bool
	OriginalContext    int
	BetaFast, BetaSlow float64 // 32 and 1 where the file gives none

	// Magnitude multiplies cos and sin (attention factor of YaRN and LongRoPE).
	Magnitude float64
}

// Angles returns cos and sin for positions [from, from+n), each [n][NRot/2].
func (t *RoPETable) Angles(from, n int) (cos, sin []float32) {
	half := t.NRot / 2
	freq := t.frequencies()
	cos = make([]float32, n*half)
	sin = make([]float32, n*half)
	for p := range n {
		for i, f := range freq {
			s, c := hostSinCos(float64(from+p) * f)
			cos[p*half+i] = float32(c * t.Magnitude)
			sin[p*half+i] = float32(s * t.Magnitude)
		}
	}
	return cos, sin
}

// frequencies are the angles per position.
func (t *RoPETable) frequencies() []float64 {
	freq := make([]float64, t.NRot/2)
	low, high := t.ramp()
	for i := range freq {
		step, columns := i, t.NRot
		if t.Period > 0 {
			step, columns = i%t.Period, 2*t.Period
		}
		f := hostPow(t.Base, -2*float64(step)/float64(columns))
		if t.Factors != nil {
			f /= float64(t.Factors[i])
		}
		keep := 0.0 // share of the unscaled angle
		if t.YaRN {
			keep = 1 - min(max((float64(i)-low)/max(0.001, high-low), 0), 1)
		}
		freq[i] = float64(f*t.Scale*(1-keep)) + float64(f*keep) // never fused: the table is the same on every machine
	}
	return freq
}

// ramp gives the dimensions between which YaRN goes from keeping to scaling.
func (t *RoPETable) ramp() (low, high float64) {
	if !t.YaRN {
		return 0, 0
	}
	dim := func(beta float64) float64 {
		return float64(t.NRot) * hostLn(float64(t.OriginalContext)/(beta*2*math.Pi)) / (2 * hostLn(t.Base))
	}
	return max(0, math.Floor(dim(t.BetaFast))), min(float64(t.NRot-1), math.Ceil(dim(t.BetaSlow)))
}
