package sampling

import (
	"math"
	"slices"
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
		slices.SortFunc(s.first, compare)
	}
	s.topped = n
	return s.first
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

// gather puts the n first candidates into s.first, in any order. A limit that a sample
// of the row suggests leaves few candidates to look at closely; where it leaves too few
// it is lowered, so that the result never depends on it.
func (d *Distribution) gather(n int) {
	s := d.s
	for wanted := 2 * n; ; wanted *= 8 {
		limit := s.limit(d.logits, wanted)
		s.found = slices.Grow(s.found[:0], len(d.logits))[:len(d.logits)]
		count := s.above(s.found, d.logits, limit)
		if count < n && limit > -math.MaxFloat32 {
			continue
		}
		for _, i := range s.found[:count] {
			s.first = append(s.first, d.At(int(i)))
		}
		break
	}
	if len(s.first) > n {
		k, _ := cut(s.first, float64(n), func(Candidate) float64 { return 1 })
		s.first = s.first[:k]
	}
}

// above uses the scanner where the row is worth its call.
func (s *Scratch) above(found []int32, row []float32, limit float32) int {
	if s.Scan != nil && len(row) >= blockItems {
		return s.Scan.Above(found, row, limit)
	}
	return ScanAbove(found, row, limit)
}

// ScanAbove writes the places of the finite logits that are at least limit, in order,
// and returns how many there are; found has room for all of the row.
func ScanAbove(found []int32, row []float32, limit float32) int {
	n := 0
	for i, l := range row {
		if l >= limit && l <= math.MaxFloat32 {
			found[n] = int32(i)
			n++
		}
	}
	return n
}

// limit guesses the logit that about wanted candidates of a row reach.
func (s *Scratch) limit(row []float32, wanted int) float32 {
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
