package sampling

import "math"

// Stats describe the finite logits of a distribution at temperature 1.
type Stats struct {
	Max       float32
	Mean, Std float32 // of the logits; Std divides by their number
	LogSumExp float32 // natural log of the sum of exp(logit)
	Entropy   float32 // of the distribution, in nats
	Finite    int     // how many logits are finite
}

// Scanner computes over whole rows what this package computes in plain Go, faster and
// with the same results to the bit: see [ScanMoments], [ScanMass] and [ScanAbove], which
// are the definitions. A Scanner is called by one goroutine at a time.
type Scanner interface {
	// Moments is ScanMoments.
	Moments(row []float32, pivot float32) Moments
	// Mass is ScanMass.
	Mass(row []float32, top float32) Mass
	// Above is ScanAbove.
	Above(ids []int32, row []float32, limit float32) int
}

// Moments are sums over the finite logits of a row, taken from a pivot.
type Moments struct {
	Count       int     // finite logits
	First       float64 // sum of (logit − pivot)
	Second      float64 // sum of (logit − pivot)²
	Largest     float32 // largest finite logit, −Inf when there is none
	LargestAt   int     // the lowest place that holds it, −1 when there is none
	PositiveInf bool    // a logit is +Inf or NaN
}

// Mass are sums over the finite logits of a row, of weights exp(logit − top).
type Mass struct {
	Sum      float64 // of weights
	Distance float64 // of weight · (top − logit)
}

// A row is summed in lanes: element i goes to lane i mod lanes in float32, and after
// each block of so many elements the lanes are added, in order, to a float64. Vector
// units of 128 to 512 bits can keep to that, so all machines agree to the bit.
const (
	lanes      = 16
	blockItems = 1024
)

// Stats returns the statistics of the candidates that are left, whatever the floor. They
// are computed once for each state of the logits.
func (d *Distribution) Stats() Stats {
	s := d.s
	if s.counted {
		return s.stats
	}
	row := d.logits
	pivot := pivotOf(row)
	m := s.moments(row, pivot)
	if !d.known {
		d.peak, d.known = Candidate{Logit: float32(math.Inf(-1))}, true
		if m.LargestAt >= 0 {
			d.peak = d.At(m.LargestAt)
		}
	}
	s.stats = Stats{Max: m.Largest, LogSumExp: m.Largest, Finite: m.Count}
	if m.Count > 0 {
		n := float64(m.Count)
		mean := float64(m.First / n)
		variance := float64(m.Second/n) - float64(mean*mean)
		mass := s.mass(row, m.Largest)
		log := ln(mass.Sum)
		s.stats.Mean = float32(float64(pivot) + mean)
		s.stats.Std = float32(math.Sqrt(max(variance, 0)))
		s.stats.LogSumExp = float32(float64(m.Largest) + log)
		s.stats.Entropy = float32(max(log+float64(mass.Distance/mass.Sum), 0))
	}
	s.counted = true
	return s.stats
}

// moments and mass use the scanner where the row is worth its call.
func (s *Scratch) moments(row []float32, pivot float32) Moments {
	if s.Scan != nil && len(row) >= blockItems {
		return s.Scan.Moments(row, pivot)
	}
	return ScanMoments(row, pivot)
}

func (s *Scratch) mass(row []float32, top float32) Mass {
	if s.Scan != nil && len(row) >= blockItems {
		return s.Scan.Mass(row, top)
	}
	return ScanMass(row, top)
}

// pivotOf returns a number near the mean of a row's finite logits, so that the sum of
// squares from it loses nothing to the mean's own square.
func pivotOf(row []float32) float32 {
	const samples = 256
	step := max(len(row)/samples, 1)
	sum, n := 0.0, 0
	for i := 0; i < len(row); i += step {
		if l := row[i]; l >= -math.MaxFloat32 && l <= math.MaxFloat32 {
			sum += float64(l)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return float32(sum / float64(n))
}

// ScanMoments sums (logit − pivot) and its square over the finite logits of a row.
func ScanMoments(row []float32, pivot float32) Moments {
	m := Moments{Largest: float32(math.Inf(-1)), LargestAt: -1}
	for from := 0; from < len(row); from += blockItems {
		var first, second [lanes]float32
		for i, l := range row[from:min(from+blockItems, len(row))] {
			if !(l >= -math.MaxFloat32 && l <= math.MaxFloat32) {
				m.PositiveInf = m.PositiveInf || !(l < 0)
				continue
			}
			m.Count++
			if l > m.Largest {
				m.Largest, m.LargestAt = l, from+i
			}
			x := float32(l - pivot)
			first[i%lanes] += x
			second[i%lanes] += float32(x * x)
		}
		m.First += addLanes(&first)
		m.Second += addLanes(&second)
	}
	return m
}

func addLanes(l *[lanes]float32) (sum float64) {
	for _, v := range l {
		sum += float64(v)
	}
	return sum
}

// ScanMass sums the weights exp(logit − top) of a row, whose largest logit is top, and
// the weighted distances from it. NaN and infinite logits weigh nothing.
func ScanMass(row []float32, top float32) Mass {
	var m Mass
	for from := 0; from < len(row); from += blockItems {
		var sum, distance [lanes]float32
		for i, l := range row[from:min(from+blockItems, len(row))] {
			x := float32(top - l)
			w := exp32(x)
			if w == 0 {
				continue // its distance may be infinite
			}
			sum[i%lanes] += w
			distance[i%lanes] += float32(w * x)
		}
		m.Sum += addLanes(&sum)
		m.Distance += addLanes(&distance)
	}
	return m
}

// Coefficients of 2^f on [−1/2, 1/2], of ln 2 to the powers over the factorials: the
// relative error of exp32 is below 3e-7.
const (
	exp1 = 0.693147181
	exp2 = 0.240226507
	exp3 = 0.0555041087
	exp4 = 0.00961812911
	exp5 = 0.00133335581
	exp6 = 0.000154035304

	log2e = 1.44269504
	// roundMagic32, added to a number below 2^22, leaves it rounded to the nearest whole
	// number in the low bits of the sum.
	roundMagic32 = 3 << 22
	// farthest is where weights count as zero: 2^-64, as in the rest of the package.
	farthest = 64 * math.Ln2
)

// exp32 returns e^−x for x ≥ 0, in float32 operations of which none is fused; 0 from
// farthest on and for NaN.
func exp32(x float32) float32 {
	if !(x < farthest) {
		return 0
	}
	t := float32(-x * log2e)
	m := float32(t + roundMagic32)
	f := float32(t - float32(m-roundMagic32))
	p := float32(exp6)
	p = float32(float32(p*f) + exp5)
	p = float32(float32(p*f) + exp4)
	p = float32(float32(p*f) + exp3)
	p = float32(float32(p*f) + exp2)
	p = float32(float32(p*f) + exp1)
	p = float32(float32(p*f) + 1)
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(m)<<23)
}

// ln returns the natural logarithm of a positive, normal number, with operations that
// no compiler fuses, to about 1e-14: x = 2^e·m, ln m = 2·artanh((m−1)/(m+1)).
func ln(x float64) float64 {
	frac, e := math.Frexp(x) // frac in [1/2, 1)
	if frac < math.Sqrt2/2 {
		frac, e = frac*2, e-1
	}
	r := float64((frac - 1) / (frac + 1))
	q := float64(r * r)
	sum := 0.0
	for k := 17; k >= 1; k -= 2 {
		sum = float64(float64(sum*q) + 1/float64(k))
	}
	return float64(float64(e)*math.Ln2) + float64(2*float64(r*sum))
}
