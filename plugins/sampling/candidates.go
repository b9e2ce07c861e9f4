package sampling

import (
	"math"
	"slices"
)

// Keep makes candidates with their new logits all that is left. They must be of those
// that the last Top returned, each once, in any order; logits of −Inf take candidates
// out. With an error the distribution is as it was. The slice is reordered.
func (d *Distribution) Keep(candidates []Candidate) error {
	s := d.s
	if !s.offered(candidates) {
		return ErrID
	}
	kept, ranked := candidates[:0], true
	for _, c := range candidates {
		switch {
		case c.Logit < out:
			continue
		case !(c.Logit <= math.MaxFloat32):
			return ErrNaN
		}
		ranked = ranked && (len(kept) == 0 || kept[len(kept)-1].before(c))
		kept = append(kept, c)
	}
	if len(kept) == 0 {
		return ErrEmpty
	}
	if !ranked {
		slices.SortFunc(kept, compare)
	}
	ids, logits := s.sparedIDs[:0], s.spared[:0]
	for _, c := range kept {
		ids, logits = append(ids, c.ID), append(logits, c.Logit)
	}
	d.become(ids, logits)
	d.ranked = true
	d.peak, d.known = kept[0], true
	return nil
}

// become makes lists that were built in the spare buffers the distribution.
func (d *Distribution) become(ids []int32, logits []float32) {
	s := d.s
	s.ids, s.sparedIDs = ids, s.ids
	s.row, s.spared = logits, s.row
	d.ids, d.logits, d.ranked, d.shared, d.part = ids, logits, false, false, false
	d.stale()
}

// offered tells whether candidates are some of s.first, each at most once. Most code
// keeps the order, which needs one look at each.
func (s *Scratch) offered(candidates []Candidate) bool {
	at := 0
	for _, c := range candidates {
		for at < len(s.first) && s.first[at].ID != c.ID {
			at++
		}
		if at == len(s.first) {
			return s.offeredAnyhow(candidates)
		}
		at++
	}
	return true
}

func (s *Scratch) offeredAnyhow(candidates []Candidate) bool {
	if len(candidates) > len(s.first) {
		return false
	}
	s.packed = s.packed[:0]
	for _, c := range candidates {
		s.packed = append(s.packed, uint64(uint32(c.ID))<<1|1)
	}
	for _, c := range s.first {
		s.packed = append(s.packed, uint64(uint32(c.ID))<<1)
	}
	slices.Sort(s.packed) // an offer stands before the candidate that takes it up
	for i, p := range s.packed {
		if p&1 == 1 && (i == 0 || s.packed[i-1] != p-1) {
			return false
		}
	}
	return true
}

// Settle makes the distribution what would be drawn from: only the candidates that
// the filters let stay, with their logits divided by the temperature.
func (d *Distribution) Settle() {
	if d.floor == lowest && d.scale == 1 && !d.part {
		return
	}
	s := d.s
	ids, logits := s.sparedIDs[:0], s.spared[:0]
	for i, l := range d.logits {
		if !(l >= max(d.floor.Logit, out)) {
			continue
		}
		if c := d.At(i); d.stays(c) {
			ids, logits = append(ids, c.ID), append(logits, float32(float64(l)*d.scale))
		}
	}
	ranked := d.ranked
	d.become(ids, logits)
	d.ranked, d.floor, d.scale, d.known = ranked, lowest, 1, false
}
