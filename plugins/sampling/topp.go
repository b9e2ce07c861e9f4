package sampling

// topPStage keeps the smallest set of the most likely candidates whose probability
// together is at least p, with 0 < p < 1.
type topPStage float64

func (p topPStage) Apply(d *Distribution) {
	h := d.histogram()
	left := float64(float64(p) * h.total())
	for b, mass := range h.mass[:h.last+1] {
		if mass < left {
			left -= mass
			continue
		}
		if mass == 0 {
			continue
		}
		m := d.members(b)
		n, last := cut(m, left, func(c Candidate) float64 { return d.exact(c.Logit) })
		d.raise(last, b, m[:n])
		return
	}
}
