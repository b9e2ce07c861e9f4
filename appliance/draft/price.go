package draft

import "time"

// MaxRows is the largest number of rows with a price of their own; a batch reads no
// more heads back.
const MaxRows = 64

// A price is a mean over recent steps, in which a new one has the weight priceGain. It
// is forgotten after priceAge steps of other sizes, so that a step that took long by
// accident is tried again. Until a size has been seen, each further row is taken to
// cost priceRow of a step with one.
const (
	priceGain = 0.25
	priceAge  = 512
	priceRow  = 0.125
)

// Price knows what a step takes with so many rows that decode. The zero value knows
// nothing.
type Price struct {
	mean [MaxRows + 1]float64 // seconds
	when [MaxRows + 1]int     // step of the latest observation
	step int
}

// Saw notes a step; one that took no time is no observation.
func (p *Price) Saw(rows int, took time.Duration) {
	if rows < 1 || rows > MaxRows || took <= 0 {
		return
	}
	known := p.known(rows)
	p.step++
	p.when[rows] = p.step
	if s := took.Seconds(); known {
		p.mean[rows] += priceGain * (s - p.mean[rows])
	} else {
		p.mean[rows] = s
	}
}

// Known tells whether any step was seen.
func (p *Price) Known() bool { return p.step > 0 }

// known tells whether steps of a size were seen lately.
func (p *Price) known(rows int) bool {
	return p.when[rows] > 0 && p.step-p.when[rows] < priceAge
}

// Of returns what a step takes: seconds, or where nothing is known at all a number
// that is right relative to those of other sizes.
func (p *Price) Of(rows int) float64 {
	rows = min(max(rows, 1), MaxRows)
	low, high := rows, rows
	for low > 0 && !p.known(low) {
		low--
	}
	for high <= MaxRows && !p.known(high) {
		high++
	}
	switch {
	case low == rows:
		return p.mean[rows]
	case low > 0 && high <= MaxRows:
		part := float64(rows-low) / float64(high-low)
		return p.mean[low] + part*(p.mean[high]-p.mean[low])
	case low > 0:
		return p.mean[low] * guessed(rows) / guessed(low)
	case high <= MaxRows:
		return p.mean[high] * guessed(rows) / guessed(high)
	}
	return guessed(rows)
}

// guessed is the price of a size relative to that of one row, before any is known.
func guessed(rows int) float64 { return 1 + priceRow*float64(rows-1) }
