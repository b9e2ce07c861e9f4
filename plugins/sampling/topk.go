package sampling

// topKStage keeps the k candidates with the largest logits, ties to the lower id.
type topKStage int

func (k topKStage) Apply(d *Distribution) {
	h := d.histogram()
	left := uint64(k)
	for b, f := range h.fine[:h.last+1] {
		if n := f >> 32; n < left {
			left -= n
			continue
		}
		m := d.members(b)
		n, last := cut(m, float64(left), func(Candidate) float64 { return 1 })
		d.raise(last, b, m[:n])
		return
	}
	// Those that weigh nothing are never drawn; plugins see them, and no more than k in all.
	if top := d.Top(int(k)); len(top) == int(k) && d.Len() > int(k) {
		d.floor = top[k-1]
	}
}
