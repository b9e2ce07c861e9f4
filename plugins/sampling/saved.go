package sampling

// Saved is a distribution as it was at one point of its step. The zero value is ready; it
// grows to the vocabulary once.
type Saved struct {
	d      Distribution
	ids    []int32
	logits []float32
}

// Save copies the distribution.
func (d *Distribution) Save(to *Saved) {
	to.d = *d
	to.ids = append(to.ids[:0], d.ids...)
	if !d.shared { // else nobody writes to them
		to.logits = append(to.logits[:0], d.logits...)
	}
}

// Restore makes the distribution what it was when it was saved, in the same step. What
// Top gave before is no longer offered.
func (d *Distribution) Restore(from *Saved) {
	s := d.s
	*d = from.d
	if d.ids != nil {
		s.ids = append(s.ids[:0], from.ids...)
		d.ids = s.ids
	}
	if !d.shared {
		s.row = append(s.row[:0], from.logits...)
		d.logits = s.row
	}
	d.stale()
}
