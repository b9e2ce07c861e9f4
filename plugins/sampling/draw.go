package sampling

// draw picks the candidate at the fraction u in [0, 1) of the mass: buckets stand
// from heavy to light candidates, and within a bucket candidates stand by id. It
// reports false when nothing can be drawn.
func draw(d *Distribution, u float64) (Candidate, bool) {
	h := d.histogram()
	left := float64(u * h.total())
	for b, mass := range h.mass[:h.last+1] {
		// Rounding may leave a little at the end, which the last bucket takes.
		if mass <= left && b < h.last {
			left -= mass
			continue
		}
		if mass == 0 {
			break
		}
		m := d.members(b)
		sum := 0.0
		for _, c := range m {
			sum += d.exact(c.Logit)
		}
		left = float64(left / mass * sum)
		for _, c := range m[:len(m)-1] {
			w := d.exact(c.Logit)
			if left < w {
				return c, true
			}
			left -= w
		}
		return m[len(m)-1], true
	}
	return Candidate{}, false
}
