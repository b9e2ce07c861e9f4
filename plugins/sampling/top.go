package sampling

import (
	"math"
	"slices"

	"ganglion/plugins/rowstats"
)

// Top returns the n first candidates in order, fewer where fewer are finite, whatever
// the floor. The slice is valid until the distribution changes or Top is called again.
func (d *Distribution) Top(n int) []Candidate {
	s := d.s
	if s.topped >= n && n > 0 {
		return s.first[:min(n, len(s.first))]
	}
	s.first = s.first[:0]
	switch {
	case n <= 0:
		return nil
	case d.ranked:
		for i := range min(n, len(d.logits)) {
			if c := d.At(i); c.Logit >= -math.MaxFloat32 {
				s.first = append(s.first, c)
			}
		}
	default:
		d.gather(n)
	}
	s.topped = n
	return s.first
}

// Share returns the probability of the n first candidates together, at temperature 1 and
// whatever the floor. It is computed once for each state of the logits, for plugins that
// look at the same ones.
func (d *Distribution) Share(n int) float64 {
	s := d.s
	if s.shareOf == n && n > 0 {
		return s.share
	}
	top, stats := d.Top(n), d.Stats()
	s.shareOf, s.share = n, 1
	if len(top) < stats.Finite {
		s.share = min(share(top, stats.LogSumExp), 1)
	}
	return s.share
}

func share(top []Candidate, logSumExp float32) (sum float64) {
	for _, c := range top {
		t := float32(-float32(logSumExp-c.Logit) * rowstats.Log2E)
		if t > rowstats.Farthest && t <= 0 {
			m := rowstats.Whole(t)
			sum += float64(rowstats.Scaled(rowstats.Fraction(float32(t-float32(m-rowstats.RoundMagic))), m))
		}
	}
	return sum
}

func compare(a, b Candidate) int {
	switch {
	case a == b:
		return 0
	case a.before(b):
		return -1
	}
	return 1
}

// gather puts the n first candidates into s.first, in order. A limit that at least n
// peaks of the row reach leaves few candidates to look at closely: with four times as many
// peaks as wanted about 1.15·n. A row with few peaks is sampled instead, and where that
// limit leaves too few it is lowered. So the result never depends on it.
func (d *Distribution) gather(n int) {
	s, row := d.s, d.logits
	s.scan(row)
	s.found = slices.Grow(s.found[:0], len(row))[:len(row)]
	wanted := 2 * n
	limit := s.limit(row, n, wanted)
	count := s.above(row, limit)
	for count < n && limit > -math.MaxFloat32 {
		wanted *= 8
		limit = s.sampled(row, wanted)
		count = s.above(row, limit)
	}
	found := s.found[:count]
	if count > 2*n {
		for _, i := range found {
			s.first = append(s.first, Candidate{i, row[i]})
		}
		k, _ := cut(s.first, float64(n), func(Candidate) float64 { return 1 })
		for i, c := range s.first[:k] {
			found[i] = c.ID
		}
		found, s.first = found[:k], s.first[:0]
	}
	// Places are in the order of ids, and whole numbers are sorted faster than structs.
	s.packed = s.packed[:0]
	for _, i := range found {
		s.packed = append(s.packed, uint64(^ordered(row[i]+0))<<32|uint64(i)) // −0 + 0 is 0
	}
	slices.Sort(s.packed)
	for _, p := range s.packed[:min(n, len(s.packed))] {
		s.first = append(s.first, d.At(int(uint32(p))))
	}
}

// limit returns a logit that n candidates of a row, or few less, reach.
func (s *Scratch) limit(row []float32, n, wanted int) float32 {
	if 4*n > 3*len(s.peaks) {
		return s.sampled(row, wanted)
	}
	s.spike = slices.Grow(s.spike[:0], len(s.peaks)/2)[:len(s.peaks)/2]
	if s.quick(row) {
		return s.Scan.Limit(s.peaks, n, s.spike)
	}
	return ScanLimit(s.peaks, n, s.spike)
}

// above uses the scanner where the row is worth its call.
func (s *Scratch) above(row []float32, limit float32) int {
	if s.quick(row) {
		return s.Scan.Above(s.found, row, s.peaks, limit)
	}
	return ScanAbove(s.found, row, s.peaks, limit)
}

// ScanLimit returns the largest number that n of the peaks of a row reach, after peaks
// were joined in pairs for as long as four times n are left: of those, half as far from
// the start and from the middle, the larger stays. It is −math.MaxFloat32 where fewer
// than n are finite. The number of peaks is that of rowstats.PeaksOf, n is positive and spare has
// room for half of them.
func ScanLimit(peaks []float32, n int, spare []float32) float32 {
	for len(peaks)%(2*rowstats.LaneCount) == 0 && len(peaks)/2 >= 4*n {
		half := len(peaks) / 2
		for i := range half {
			spare[i] = max(peaks[i], peaks[half+i])
		}
		peaks = spare[:half]
	}
	reach := func(limit float32) (k int) {
		for _, p := range peaks {
			if p >= limit {
				k++
			}
		}
		return k
	}
	// Each step halves the range of floats that it can be.
	low, high := ordered(-math.MaxFloat32), ordered(math.MaxFloat32)
	for low < high {
		mid := high - (high-low)/2
		if reach(unordered(mid)) >= n {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return unordered(low)
}

// ScanAbove writes the places of the finite logits that are at least limit, in order,
// and returns how many there are; found has room for all of the row.
func ScanAbove(found []int32, row, peaks []float32, limit float32) int {
	n := 0
	for from := 0; from < len(row); from += rowstats.Part {
		if slices.Max(peaks[from/rowstats.Part*rowstats.LaneCount:][:rowstats.LaneCount]) < limit {
			continue
		}
		for i, l := range row[from:min(from+rowstats.Part, len(row))] {
			if l >= limit && l <= math.MaxFloat32 {
				found[n] = int32(from + i)
				n++
			}
		}
	}
	return n
}

// sampled guesses the logit that about wanted candidates of a row reach.
func (s *Scratch) sampled(row []float32, wanted int) float32 {
	const samples = 1024
	if len(row) <= 2*samples || wanted >= len(row)/2 {
		return -math.MaxFloat32
	}
	step := len(row) / samples
	s.sample = s.sample[:0]
	for i := 0; i < len(row); i += step {
		s.sample = append(s.sample, ordered(row[i]))
	}
	slices.Sort(s.sample)
	rank := wanted/step + 4
	if rank >= len(s.sample) {
		return -math.MaxFloat32
	}
	return max(unordered(s.sample[len(s.sample)-1-rank]), -math.MaxFloat32)
}
