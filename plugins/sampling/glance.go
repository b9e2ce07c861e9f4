package sampling

import (
	"math"
	"slices"
)

const (
	glanced = 64 // candidates that are looked at where no view was made
	// doubt is how far a sum of weights may be off, as a part of it: a bucket's mass is known
	// to 1e-5, a log-sum-exp to a few 2^-24 of its size.
	doubt = 4e-5
	// dust is the part of the mass below which candidates are not looked at one by one.
	dust = 1e-6
)

// heads are the best candidates as a draw sees them, and what is known of all others.
type heads struct {
	list   []Candidate // best first
	weight []float64   // of each, relative to the first
	sum    float64     // of these
	lo, hi float64     // between which the weight of all others together is
	seen   int         // candidates that were looked at, of which the list has the heavy ones
	dust   float64     // what the others that were seen weigh together at most
	next   float64     // what each that is not in the list weighs at most
}

// glance is what filters and draw make of a distribution, where its best candidates and its
// statistics are enough to say: then it is to the bit what they would say of all candidates.
// ok is false where they are not, which is rare while the temperature is at most 1.
func (c *Chain) glance(d *Distribution, temperature, u float64) (pick Candidate, ok bool) {
	scale := 1 / max(temperature, minTemperature)
	h, ok := d.heads(scale)
	if !ok || !d.rest.filtered && !h.cut(&c.p) {
		return pick, false
	}
	return h.draw(d, u, finePer(scale))
}

// heads looks at the best candidates; ok is false where that is not cheap, or the others are
// not known well enough.
func (d *Distribution) heads(scale float64) (h heads, ok bool) {
	s := d.s
	top := s.first
	if s.topped == 0 {
		if !d.ranked && len(d.logits) > maxTop && !s.quick(d.logits) {
			return h, false
		}
		top = d.Top(glanced)
	}
	stats := d.Stats()
	others := stats.Finite - len(top)
	if len(top) == 0 || others > 0 && scale < 1 { // flatter than what is known of the others
		return h, false
	}
	most := float64(top[0].Logit)
	h.list, h.weight, h.seen = top, s.weights[:0], len(top)
	for i, c := range top {
		w := weight((most - float64(c.Logit)) * float64(scale*stepsPerNat))
		if left := w * float64(len(top)-i); left < dust*h.sum {
			h.list, h.dust, h.next = top[:i], left, w
			break
		}
		h.next = w
		h.weight = append(h.weight, w)
		h.sum += w
	}
	s.weights, h.hi = h.weight, h.dust
	switch mass := math.Exp(float64(stats.LogSumExp) - most); { // of all, at temperature 1
	case others <= 0:
	case scale == 1:
		off := mass * math.Abs(float64(stats.LogSumExp)) / (1 << 22)
		h.lo, h.hi = max(mass-h.sum-off, 0), max(mass-h.sum, 0)+off
	default:
		if s.shareOf == len(top) {
			mass *= max(1-s.share, 0) + doubt
		}
		// None of the others weighs more than the last of the best, and each loses at least
		// the part that that one loses where it is colder.
		last := most - float64(top[len(top)-1].Logit)
		h.hi += min(mass*math.Exp(-last*(scale-1)), float64(others)*math.Exp(-last*scale))
	}
	return h, true
}

// cut does what the filters behind the temperature do; ok is false where that is not
// certain.
func (h *heads) cut(p *Params) bool {
	if p.TopK > 0 && p.TopK < p.Vocab {
		switch {
		case p.TopK <= len(h.list):
			h.keep(p.TopK)
		case p.TopK <= h.seen:
			h.lo, h.hi = 0, h.dust
		case h.hi > 0:
			return false
		}
	}
	if p.TopP < 1 && !h.cutMass(p.TopP) {
		return false
	}
	if p.MinP > 0 {
		n := len(h.list)
		for n > 1 && h.weight[n-1] < p.MinP {
			n--
		}
		switch {
		case n < len(h.list) || h.next < p.MinP:
			h.keep(n)
		case h.hi > 0:
			return false
		}
	}
	return true
}

// keep leaves the first n.
func (h *heads) keep(n int) {
	h.list, h.weight = h.list[:n], h.weight[:n]
	h.sum, h.lo, h.hi = 0, 0, 0
	for _, w := range h.weight {
		h.sum += w
	}
}

// cutMass keeps the first ones that have a part of the mass.
func (h *heads) cutMass(part float64) bool {
	least := part * (h.sum + h.lo) * (1 - doubt)
	most := part * (h.sum + h.hi) * (1 + doubt)
	sum := 0.0
	for i, w := range h.weight {
		before := sum
		if sum += w; sum < least {
			continue
		}
		if before >= least || sum < most {
			return false
		}
		h.keep(i + 1)
		return true
	}
	return false
}

// draw picks as the draw does: buckets stand from heavy to light candidates, and within a
// bucket candidates stand by id. per is fine steps per unit of logit.
func (h *heads) draw(d *Distribution, u float64, per float32) (pick Candidate, ok bool) {
	total := h.sum + h.hi
	least, most := max(u*(h.sum+h.lo)-doubt*total, 0), u*total+doubt*total
	first, sum := h.list[0].Logit, 0.0
	for from := 0; from < len(h.list); {
		bucket, near := bucketOf(first, h.list[from].Logit, per)
		if !near {
			return pick, false
		}
		to, end := from, sum
		for ; to < len(h.list); to++ {
			if b, _ := bucketOf(first, h.list[to].Logit, per); b != bucket {
				break
			}
			end += h.weight[to]
		}
		if end <= least && (to < len(h.list) || h.hi > 0) {
			from, sum = to, end
			continue
		}
		if most >= end && (to < len(h.list) || h.hi > 0) {
			return pick, false
		}
		return h.within(d, from, to, least-sum, most-sum)
	}
	return pick, false
}

// within picks of the candidates of one bucket the one in which a place of their mass is
// that is known to be between two.
func (h *heads) within(d *Distribution, from, to int, least, most float64) (pick Candidate, ok bool) {
	if to == from+1 {
		return h.list[from], least >= 0
	}
	s := d.s
	s.places = s.places[:0]
	for i := from; i < to; i++ {
		s.places = append(s.places, uint64(uint32(h.list[i].ID))<<32|uint64(i))
	}
	slices.Sort(s.places)
	sum := 0.0
	for n, at := range s.places {
		i := int(uint32(at))
		end := sum + h.weight[i]
		switch last := n == len(s.places)-1; {
		case end <= least && !last:
			sum = end
		default:
			return h.list[i], sum <= least && (most < end || last)
		}
	}
	return pick, false
}
