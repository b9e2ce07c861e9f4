package sampling

import (
	"math"
	"slices"
)

// A bucket is one step wide. Within it a candidate's distance is kept in 1/1024 of
// a step, so that a bucket's mass is known to 1e-5 without one exponential per
// candidate.
const (
	fineBits = 10
	fineLim  = maxSteps << fineBits // 2^23: float32 holds every fine distance
)

// histogram counts candidates by their distance from the largest logit. Its sums
// are whole numbers, so they do not depend on the order of the candidates.
type histogram struct {
	// fine holds, for each bucket, the number of its candidates (high half) and
	// the sum of their fine distances from the bucket's start (low half).
	fine [maxSteps]uint64
	mass [maxSteps]float64 // weight of each bucket
	last int               // last bucket that stays; −1 when there is none
	top  float32           // logit at distance 0
	per  float32           // fine steps per unit of logit
}

// distance returns how far a logit is below the top, in fine steps, and whether it
// is near enough to count. NaN and −Inf never are.
func (h *histogram) distance(logit float32) (uint32, bool) { return distance(h.top, logit, h.per) }

func distance(top, logit, per float32) (uint32, bool) {
	x := float32((top - logit) * per)
	if !(x < fineLim) {
		return 0, false
	}
	return uint32(int32(x)) % fineLim, true
}

// bucketOf returns the bucket of a logit, and whether it is in one.
func bucketOf(top, logit, per float32) (uint32, bool) {
	f, ok := distance(top, logit, per)
	return f >> fineBits, ok
}

// finePer returns the fine steps per unit of logit at a scale.
func finePer(scale float64) float32 {
	return float32(min(scale*(stepsPerNat*(1<<fineBits)), 1e30))
}

// histogram returns the histogram of the candidates that stay, making it where an
// edit or a change of scale made the old one stale.
func (d *Distribution) histogram() *histogram {
	h := d.hist
	if d.ready {
		return h
	}
	clear(h.fine[:])
	h.last, h.top = -1, d.max()
	h.per = finePer(d.scale)
	d.ready = true
	top, per := h.top, h.per
	if !(top >= -math.MaxFloat32 && top <= math.MaxFloat32) {
		clear(h.mass[:])
		return h // nothing can be drawn
	}
	// The floor has been raised only where a histogram was ready, so without one
	// every candidate stays.
	for _, l := range d.logits {
		x := float32((top - l) * per)
		if x < fineLim {
			f := uint32(int32(x)) % fineLim
			h.fine[f>>fineBits] += 1<<32 | uint64(f%(1<<fineBits))
		}
	}
	for b := range h.fine {
		h.weigh(b)
	}
	return h
}

// weigh computes a bucket's mass: its count times the weight of its mean distance.
func (h *histogram) weigh(b int) {
	f := h.fine[b]
	if f == 0 {
		h.mass[b] = 0
		return
	}
	n := float64(f >> 32)
	mean := (float64(uint32(f))/n + 0.5) / (1 << fineBits)
	h.mass[b] = float64(n * weight(float64(b)+mean))
	h.last = max(h.last, b)
}

// total returns the mass of all buckets that stay.
func (h *histogram) total() (sum float64) {
	for _, m := range h.mass[:h.last+1] {
		sum += m
	}
	return sum
}

// exact returns a candidate's weight relative to the heaviest.
func (d *Distribution) exact(logit float32) float64 {
	return weight(float64((float64(d.hist.top) - float64(logit)) * float64(d.scale*stepsPerNat)))
}

// members returns the candidates of a bucket that stay, by ascending id. The slice
// is valid until the next call.
func (d *Distribution) members(b int) []Candidate {
	h := d.hist
	out := d.s.members[:0]
	// A range of logits that surely covers the bucket finds its candidates with
	// one comparison of bits each; distance then decides.
	step := float64(1<<fineBits) / float64(h.per)
	slack := step/16 + math.Abs(float64(h.top))/(1<<20) + float64(b)*step/(1<<20)
	hi := float32(float64(h.top) - float64(b)*step + slack)
	lo := float32(float64(h.top) - float64(b+1)*step - slack)
	mask, from, width := bitRange(lo, hi)
	for i, l := range d.logits {
		if math.Float32bits(l)&mask-from > width {
			continue
		}
		f, ok := h.distance(l)
		if c := d.At(i); ok && int(f>>fineBits) == b && d.stays(c) {
			out = append(out, c)
		}
	}
	if d.ranked {
		slices.SortFunc(out, func(a, b Candidate) int { return int(a.ID) - int(b.ID) })
	}
	d.s.members = out
	return out
}

// bitRange returns a mask and a range of masked bit patterns that hold all floats
// from lo to hi, and perhaps others: patterns of one sign are in the order of the
// floats' sizes, and where the range spans both signs, the sign is masked out and the
// larger end bounds the sizes.
func bitRange(lo, hi float32) (mask, from, width uint32) {
	a, b := math.Float32bits(lo), math.Float32bits(hi)
	if a>>31 == b>>31 {
		return math.MaxUint32, min(a, b), max(a, b) - min(a, b)
	}
	mask = math.MaxUint32 >> 1
	return mask, 0, max(a&mask, b&mask)
}

// ordered maps a float to a number that compares as the float does.
func ordered(f float32) uint32 {
	b := math.Float32bits(f)
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

// raise makes floor the last candidate that stays; it lies in bucket b, and kept
// are the candidates of that bucket that stay.
func (d *Distribution) raise(floor Candidate, b int, kept []Candidate) {
	h := d.hist
	d.floor = floor
	h.last = -1
	h.fine[b] = 0
	for _, c := range kept {
		f, _ := h.distance(c.Logit)
		h.fine[b] += 1<<32 | uint64(f%(1<<fineBits))
	}
	h.weigh(b)
	h.last = b
}
