package rowstats

import "math"

// Stats describe the finite logits of a row at temperature 1.
type Stats struct {
	Max       float32
	Mean, Std float32 // of the logits; Std divides by their number
	LogSumExp float32 // natural log of the sum of exp(logit)
	Entropy   float32 // of the distribution, in nats
	Finite    int     // how many logits are finite
}

// Moments are sums over the finite logits of a row, taken from a pivot.
type Moments struct {
	Count       int     // finite logits
	LargestAt   int     // the lowest place of the largest finite logit, −1 when there is none
	First       float64 // sum of (logit − pivot)
	Second      float64 // sum of (logit − pivot)²
	PositiveInf bool    // a logit is +Inf or NaN
	Largest     float32 // largest finite logit, −Inf when there is none
}

// Mass are sums over the finite logits of a row, of weights exp(logit − top).
type Mass struct {
	Sum      float64 // of weights
	Distance float64 // of weight · (top − logit)
}

// How a row is cut. A part of a block has a peak for each lane: the largest finite logit of
// the part in that lane, −Inf where there is none.
const (
	LaneCount = 16
	Block     = 1024
	Part      = 256
)

// PeaksOf returns the number of peaks of a row of n logits: those of whole blocks.
func PeaksOf(n int) int { return (n + Block - 1) / Block * (Block / Part * LaneCount) }

// Of returns the statistics of a row.
func Of(row []float32) Stats {
	pivot := Pivot(row)
	m := ScanMoments(row, pivot, nil)
	return Describe(pivot, &m, func() Mass { return ScanMass(row, m.Largest) })
}

// Describe makes statistics of a row's moments from a pivot, and of its mass, which it asks
// for where a logit is finite.
func Describe(pivot float32, m *Moments, mass func() Mass) Stats {
	stats := Stats{Max: m.Largest, LogSumExp: m.Largest, Finite: m.Count}
	if m.Count > 0 {
		n := float64(m.Count)
		mean := float64(m.First / n)
		variance := float64(m.Second/n) - float64(mean*mean)
		w := mass()
		log := ln(w.Sum)
		stats.Mean = float32(float64(pivot) + mean)
		stats.Std = float32(math.Sqrt(max(variance, 0)))
		stats.LogSumExp = float32(float64(m.Largest) + log)
		stats.Entropy = float32(max(log+float64(w.Distance/w.Sum), 0))
	}
	return stats
}

// samples is how many logits a pivot is made of.
const samples = 256

// Samples tells which logits of a row of n the pivot is made of: the first count ones at
// multiples of step.
func Samples(n int) (count, step int) { return min(n, samples), max(n/samples, 1) }

// Pivot returns a number near the mean of a row's finite logits: the sum of samples times
// the reciprocal of how many are finite, in lanes that are folded 16 → 8 → 4 → 2 → 1.
func Pivot(row []float32) float32 {
	count, step := Samples(len(row))
	n := 0
	for i := range count {
		if finite(row[i*step]) {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	inverse := 1 / float32(n)
	var l [LaneCount]float32
	for i := range count {
		if x := row[i*step]; finite(x) {
			l[i%LaneCount] += float32(x * inverse)
		}
	}
	for half := LaneCount / 2; half > 0; half /= 2 {
		for i := range half {
			l[i] += l[i+half]
		}
	}
	return l[0]
}

func finite(l float32) bool { return l >= -math.MaxFloat32 && l <= math.MaxFloat32 }

// Lanes are the sums of a row's lanes: High is what float32 additions gave, Low the sum of
// what they rounded away.
type Lanes struct{ High, Low [LaneCount]float32 }

// Add adds the sums of a block.
func (t *Lanes) Add(block *[LaneCount]float32) {
	for i, v := range block {
		high := t.High[i]
		sum := high + v
		b := sum - high
		a := sum - b
		t.Low[i] += (high - a) + (v - b)
		t.High[i] = sum
	}
}

// Sum returns the sum of the lanes in their order.
func (t *Lanes) Sum() (sum float64) {
	for i, high := range t.High {
		v := float64(high)
		if finite(high) { // else the rest is no number
			v += float64(t.Low[i])
		}
		sum += v
	}
	return sum
}

// ScanMoments sums (logit − pivot) and its square over the finite logits of a row, and
// fills the peaks of the row where peaks is not nil; it then has PeaksOf the row's length.
func ScanMoments(row []float32, pivot float32, peaks []float32) Moments {
	m := Moments{Largest: float32(math.Inf(-1)), LargestAt: -1}
	var first, second Lanes
	for i := range peaks {
		peaks[i] = m.Largest
	}
	for from := 0; from < len(row); from += Block {
		var f, s [LaneCount]float32
		for i, l := range row[from:min(from+Block, len(row))] {
			if !finite(l) {
				m.PositiveInf = m.PositiveInf || !(l < 0)
				continue
			}
			m.Count++
			if l > m.Largest {
				m.Largest, m.LargestAt = l, from+i
			}
			if peaks != nil {
				p := &peaks[(from+i)/Part*LaneCount+i%LaneCount]
				*p = max(*p, l)
			}
			x := float32(l - pivot)
			f[i%LaneCount] += x
			s[i%LaneCount] += float32(x * x)
		}
		first.Add(&f)
		second.Add(&s)
	}
	m.First, m.Second = first.Sum(), second.Sum()
	return m
}

// ScanMass sums the weights exp(logit − top) of a row, whose largest finite logit is top,
// and the weighted distances from it. NaN and infinite logits weigh nothing.
func ScanMass(row []float32, top float32) Mass {
	var sum, distance Lanes
	for from := 0; from < len(row); from += Block {
		var s, d [LaneCount]float32
		for i, l := range row[from:min(from+Block, len(row))] {
			t := float32(float32(l-top) * Log2E)
			if !(t > Farthest && t <= 0) {
				continue // its distance may be infinite
			}
			m := Whole(t)
			w := Scaled(Fraction(float32(t-float32(m-RoundMagic))), m)
			s[i%LaneCount] += w
			d[i%LaneCount] += float32(w * t)
		}
		sum.Add(&s)
		distance.Add(&d)
	}
	return MassOf(&sum, &distance)
}

// MassOf makes a mass of the lanes of weights and of weights times distances, which are
// counted in powers of two and below zero.
func MassOf(sum, distance *Lanes) Mass {
	return Mass{Sum: sum.Sum(), Distance: -math.Ln2 * distance.Sum()}
}
