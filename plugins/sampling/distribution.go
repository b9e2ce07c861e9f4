package sampling

import (
	"math"
	"slices"
)

// Stage edits the distribution of one step. Stages of one chain run one after
// another, in order; they keep no reference to the distribution.
type Stage interface {
	Apply(d *Distribution)
}

// Candidate is a token with its logit.
type Candidate struct {
	ID    int32
	Logit float32
}

// before tells whether a comes before b in the order of candidates: larger logit
// first, ties to the lower id.
func (a Candidate) before(b Candidate) bool {
	return a.Logit > b.Logit || (a.Logit == b.Logit && a.ID < b.ID)
}

// Distribution is what a step may still choose from: candidates in ascending order
// of id, all of them at or above a floor. A logit of −Inf or NaN is never chosen.
type Distribution struct {
	ids    []int32   // [candidates]; nil: candidate i is token i
	logits []float32 // [candidates]
	shared bool      // logits belong to the caller and must be copied before an edit

	top   float32   // largest logit, when known
	known bool      // top is valid
	scale float64   // 1/temperature
	floor Candidate // last candidate that stays
	hist  *histogram
	ready bool // hist describes the candidates as they are
	s     *Scratch
}

// Scratch is the working memory of chains that run one after another, such as all
// chains of one scheduler. The zero value is ready; it grows to the vocabulary
// once. It may not be used by two goroutines at a time.
type Scratch struct {
	d       Distribution
	row     []float32
	ids     []int32
	packed  []uint64
	members []Candidate
	hist    histogram
}

var lowest = Candidate{ID: math.MaxInt32, Logit: float32(math.Inf(-1))}

// load makes the distribution of an input, reading the row where there is one.
func (s *Scratch) load(in *Input) *Distribution {
	d := &s.d
	*d = Distribution{scale: 1, floor: lowest, hist: &s.hist, s: s, top: in.Max, known: true}
	if in.Row != nil {
		d.logits, d.shared = in.Row, true
		return d
	}
	// A list comes best first; the order of ids makes every later sum the same
	// as for the whole row.
	s.packed = s.packed[:0]
	for i, id := range in.IDs {
		s.packed = append(s.packed, uint64(uint32(id))<<32|uint64(math.Float32bits(in.Logits[i])))
	}
	slices.Sort(s.packed)
	s.ids, s.row = s.ids[:0], s.row[:0]
	for _, p := range s.packed {
		s.ids = append(s.ids, int32(p>>32))
		s.row = append(s.row, math.Float32frombits(uint32(p)))
	}
	d.ids, d.logits = s.ids, s.row
	return d
}

// Len returns the number of candidates, those below the floor included.
func (d *Distribution) Len() int { return len(d.logits) }

// At returns candidate i.
func (d *Distribution) At(i int) Candidate {
	if d.ids == nil {
		return Candidate{int32(i), d.logits[i]}
	}
	return Candidate{d.ids[i], d.logits[i]}
}

// index finds the candidate of a token.
func (d *Distribution) index(id int32) (int, bool) {
	if d.ids == nil {
		return int(id), id >= 0 && int(id) < len(d.logits)
	}
	return slices.BinarySearch(d.ids, id)
}

// Add adds v to a token's logit; a token that is no candidate is left alone.
func (d *Distribution) Add(id int32, v float32) {
	if i, ok := d.index(id); ok {
		d.edit()[i] += v
	}
}

// Ban takes a token out.
func (d *Distribution) Ban(id int32) {
	if i, ok := d.index(id); ok {
		d.edit()[i] = float32(math.Inf(-1))
	}
}

// edit returns logits that may be written.
func (d *Distribution) edit() []float32 {
	if d.shared {
		d.s.row = append(d.s.row[:0], d.logits...)
		d.logits, d.shared = d.s.row, false
	}
	d.known, d.ready = false, false
	return d.logits
}

// best returns the first candidate in order, ok is false when none is finite.
func (d *Distribution) best() (c Candidate, ok bool) {
	at, top := -1, float32(math.Inf(-1))
	for i, l := range d.logits {
		if l > top {
			at, top = i, l
		}
	}
	if at < 0 || top > math.MaxFloat32 {
		return Candidate{}, false
	}
	return d.At(at), true
}

// max returns the largest logit.
func (d *Distribution) max() float32 {
	if !d.known {
		c, ok := d.best()
		if !ok {
			c.Logit = float32(math.Inf(-1))
		}
		d.top, d.known = c.Logit, true
	}
	return d.top
}

// stays tells whether a candidate is at or above the floor.
func (d *Distribution) stays(c Candidate) bool { return !d.floor.before(c) }
