package sampling

import (
	"math"
	"slices"

	"ganglion/plugins/rowstats"
)

// Stats describe the finite logits of a distribution at temperature 1.
type Stats = rowstats.Stats

// Scanner computes over whole rows what [rowstats] and this package compute in plain Go,
// faster and with the same results to the bit: [rowstats.ScanMoments],
// [rowstats.ScanMass], [ScanLimit] and [ScanAbove] are the definitions, and of a
// rowstats.Moments the values come in the order of its fields, without the largest logit.
// It keeps nothing and is safe for concurrent use.
type Scanner interface {
	// Moments is ScanMoments.
	Moments(row []float32, pivot float32, peaks []float32) (count, largestAt int, first, second float64, positiveInf bool)
	// Mass is ScanMass.
	Mass(row []float32, top float32) (sum, distance float64)
	// Limit is ScanLimit.
	Limit(peaks []float32, n int, spare []float32) float32
	// Above is ScanAbove.
	Above(found []int32, row, peaks []float32, limit float32) int
}

// Stats returns the statistics of the candidates that are left, whatever the floor. They
// are computed once for each state of the logits; of the best of a row that nobody has
// changed they are those of the whole row.
func (d *Distribution) Stats() Stats {
	s := d.s
	if d.part {
		return s.whole
	}
	if s.counted {
		return s.stats
	}
	m := s.scan(d.logits)
	if !d.known {
		d.peak, d.known = Candidate{Logit: float32(math.Inf(-1))}, true
		if m.LargestAt >= 0 {
			d.peak = d.At(m.LargestAt)
		}
	}
	s.stats, s.counted = s.describe(d.logits, s.pivot, m), true
	return s.stats
}

// RowStats returns the statistics of a row of logits that is in no distribution.
func (s *Scratch) RowStats(row []float32) Stats {
	pivot, n := rowstats.Pivot(row), rowstats.PeaksOf(len(row))
	s.apart = slices.Grow(s.apart[:0], n)[:n]
	m := s.sum(row, pivot, s.apart)
	return s.describe(row, pivot, &m)
}

// describe makes statistics of a row's moments.
func (s *Scratch) describe(row []float32, pivot float32, m *rowstats.Moments) Stats {
	return rowstats.Describe(pivot, m, func() rowstats.Mass { return s.mass(row, m.Largest) })
}

// scan returns the moments of a row and makes its peaks, once for each state of the
// logits.
func (s *Scratch) scan(row []float32) *rowstats.Moments {
	if !s.scanned {
		n := rowstats.PeaksOf(len(row))
		s.pivot, s.peaks = rowstats.Pivot(row), slices.Grow(s.peaks[:0], n)[:n]
		s.moments, s.scanned = s.sum(row, s.pivot, s.peaks), true
	}
	return &s.moments
}

// sum is ScanMoments by the fastest way.
func (s *Scratch) sum(row []float32, pivot float32, peaks []float32) (m rowstats.Moments) {
	if !s.quick(row) {
		return rowstats.ScanMoments(row, pivot, peaks)
	}
	m.Largest = float32(math.Inf(-1))
	m.Count, m.LargestAt, m.First, m.Second, m.PositiveInf = s.Scan.Moments(row, pivot, peaks)
	if m.LargestAt >= 0 {
		m.Largest = row[m.LargestAt]
	}
	return m
}

// quick tells whether there is a scanner and the row is worth its call.
func (s *Scratch) quick(row []float32) bool { return s.Scan != nil && len(row) >= rowstats.Part }

func (s *Scratch) mass(row []float32, top float32) (m rowstats.Mass) {
	if s.quick(row) {
		m.Sum, m.Distance = s.Scan.Mass(row, top)
		return m
	}
	return rowstats.ScanMass(row, top)
}
