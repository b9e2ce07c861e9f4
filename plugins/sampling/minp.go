package sampling

import "math"

// minPStage keeps the candidates whose probability is at least p times that of the
// most likely one, with 0 < p ≤ 1.
type minPStage float64

func (p minPStage) Apply(d *Distribution) {
	h := d.histogram()
	// The weight falls with the logit, so the least logit that stays is found by
	// bisection over the floats; the top itself always stays.
	out, in := ordered(float32(math.Inf(-1))), ordered(h.top)
	for in-out > 1 {
		mid := out + (in-out)/2
		if d.exact(unordered(mid)) >= float64(p) {
			in = mid
		} else {
			out = mid
		}
	}
	floor := Candidate{ID: math.MaxInt32, Logit: unordered(in)}
	f, ok := h.distance(floor.Logit)
	b := int(f >> fineBits)
	if !ok || b > h.last || !d.stays(floor) {
		return
	}
	m := d.members(b)
	kept := m[:0]
	for _, c := range m {
		if !floor.before(c) {
			kept = append(kept, c)
		}
	}
	d.raise(floor, b, kept)
}

// unordered is the inverse of ordered.
func unordered(u uint32) float32 {
	if u>>31 == 1 {
		return math.Float32frombits(u ^ 1<<31)
	}
	return math.Float32frombits(^u)
}
