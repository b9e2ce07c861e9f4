package sampling

import (
	"math"
	"slices"

	"ganglion/plugins/rowstats"
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
// of id, or best first where ranked is set, all of them at or above a floor. A logit
// of −Inf or NaN is never chosen.
type Distribution struct {
	ids    []int32   // [candidates]; nil: candidate i is token i
	logits []float32 // [candidates]
	vocab  int       // ids are below it
	ranked bool      // ids and logits stand in the order of candidates
	shared bool      // logits belong to the caller and must be copied before an edit
	part   bool      // they are the best of a row, of which no more is known than Scratch.whole

	peak  Candidate // first in the order of candidates, when known
	known bool      // peak is valid
	scale float64   // 1/temperature
	floor Candidate // last candidate that stays
	hist  *histogram
	ready bool // hist describes the candidates as they are
	rest  rest // see Outcome
	s     *Scratch
}

// Scratch is the working memory of chains that run one after another, such as all
// chains of one scheduler. The zero value is ready; it grows to the vocabulary
// once. It may not be used by two goroutines at a time.
type Scratch struct {
	// Scan, when not nil, is used on whole rows. It changes no result.
	Scan Scanner

	d       Distribution
	row     []float32
	ids     []int32
	packed  []uint64
	members []Candidate
	hist    histogram

	spared    []float32 // for a row that replaces row
	sparedIDs []int32   // for ids that replace ids

	first   []Candidate      // see Distribution.Top
	share   float64          // of the shareOf first candidates; see Distribution.Share
	shareOf int              // 0: share is stale
	topped  int              // how many were asked for when first was made; 0: it is stale
	moments rowstats.Moments // of the logits, from pivot; see Scratch.scan
	pivot   float32
	peaks   []float32   // of the logits
	spike   []float32   // spare peaks, see ScanLimit
	apart   []float32   // peaks of a row that is in no distribution
	scanned bool        // moments, pivot and peaks are valid
	whole   Stats       // of the row that the input is the best of; see Distribution.part
	stats   Stats       // see Distribution.Stats
	counted bool        // stats is valid
	undo    []Candidate // see Distribution.Edit
	found   []int32     // see Distribution.gather
	sample  []uint32    // see Scratch.limit
	other   *Scratch    // see Distribution.aside
	weights []float64   // see Distribution.heads
	places  []uint64    // see heads.within
}

var lowest = Candidate{ID: math.MaxInt32, Logit: float32(math.Inf(-1))}

// load makes the distribution of an input, reading the row where there is one.
func (s *Scratch) load(in *Input) *Distribution {
	d := &s.d
	*d = Distribution{scale: 1, floor: lowest, hist: &s.hist, s: s, peak: Candidate{in.Best, in.Max}, known: true}
	s.topped, s.shareOf, s.counted, s.scanned = 0, 0, false, false
	if in.Row != nil {
		d.logits, d.vocab, d.shared = in.Row, len(in.Row), true
		return d
	}
	d.vocab = math.MaxInt32
	d.byID(in.IDs, in.Logits)
	d.part, s.whole = in.Stats.Finite > 0, in.Stats
	return d
}

// byID makes a list of candidates the distribution, in ascending order of id: that
// makes every later sum the same as for the whole row.
func (d *Distribution) byID(ids []int32, logits []float32) {
	s := d.s
	s.packed = s.packed[:0]
	for i, id := range ids {
		s.packed = append(s.packed, uint64(uint32(id))<<32|uint64(math.Float32bits(logits[i])))
	}
	slices.Sort(s.packed)
	s.ids, s.row = s.ids[:0], s.row[:0]
	for _, p := range s.packed {
		s.ids = append(s.ids, int32(p>>32))
		s.row = append(s.row, math.Float32frombits(uint32(p)))
	}
	d.ids, d.logits, d.ranked, d.shared, d.part = s.ids, s.row, false, false, false
}

// unrank puts candidates that stand best first into the order of ids, in which they
// can be found and edited.
func (d *Distribution) unrank() {
	if d.ranked {
		d.byID(d.ids, d.logits)
	}
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
	d.unrank()
	if i, ok := d.index(id); ok {
		d.set(i, d.logits[i]+v)
	}
}

// Ban takes a token out.
func (d *Distribution) Ban(id int32) {
	d.unrank()
	if i, ok := d.index(id); ok {
		d.set(i, float32(math.Inf(-1)))
	}
}

// set changes the logit of candidate i.
func (d *Distribution) set(i int, v float32) {
	row := d.edit()
	c := Candidate{d.At(i).ID, v}
	switch {
	case !d.known:
	case c.ID == d.peak.ID:
		d.known = v >= row[i]
		d.peak = c
	case !d.peak.before(c):
		d.peak, d.known = c, v == v
	}
	row[i] = v
}

// edit returns logits that may be written.
func (d *Distribution) edit() []float32 {
	if d.shared {
		d.s.row = append(d.s.row[:0], d.logits...)
		d.logits, d.shared = d.s.row, false
	}
	d.stale()
	return d.logits
}

// stale forgets what was computed of the logits, but the peak.
func (d *Distribution) stale() {
	d.ready = false
	d.s.topped, d.s.shareOf, d.s.counted, d.s.scanned = 0, 0, false, false
}

// best returns the first candidate in order, ok is false when none is finite.
func (d *Distribution) best() (c Candidate, ok bool) {
	if !d.known {
		d.peak, d.known = d.seek(), true
	}
	top := d.peak.Logit
	return d.peak, top >= -math.MaxFloat32 && top <= math.MaxFloat32
}

// seek finds the first candidate in order; its logit is −Inf when there is none.
func (d *Distribution) seek() Candidate {
	at, top := -1, float32(math.Inf(-1))
	for i, l := range d.logits {
		if l > top {
			at, top = i, l
		}
	}
	if at < 0 {
		return Candidate{Logit: top}
	}
	return d.At(at)
}

// max returns the largest logit, −Inf when none is a finite number.
func (d *Distribution) max() float32 {
	c, ok := d.best()
	if !ok {
		return float32(math.Inf(-1))
	}
	return c.Logit
}

// stays tells whether a candidate is at or above the floor.
func (d *Distribution) stays(c Candidate) bool { return !d.floor.before(c) }

// Best returns the first candidate in order; its logit is −Inf when none is left.
func (d *Distribution) Best() Candidate {
	d.best()
	return d.peak
}

// Logit returns a token's logit, −Inf where it is no candidate.
func (d *Distribution) Logit(id int32) float32 {
	if d.ranked {
		if i := slices.Index(d.ids, id); i >= 0 {
			return d.logits[i]
		}
		return float32(math.Inf(-1))
	}
	if i, ok := d.index(id); ok {
		return d.logits[i]
	}
	return float32(math.Inf(-1))
}

// Has tells whether a token may still be chosen.
func (d *Distribution) Has(id int32) bool { return d.Logit(id) >= out }
