package appliance

import (
	"math/bits"
	"time"
)

// How long one batch may take. A cancelled request is noticed between batches, so
// the longest step bounds the time to cancel (250 ms are promised); and a sequence
// that decodes gets one token per step, so a step with prompt rows beside decoding
// ones has to be shorter.
const (
	stepAlone   = 120 * time.Millisecond
	stepCompany = 60 * time.Millisecond

	firstRows = 16 // prompt rows of a step while the speed is unknown: 160 ms at 10 ms a row
	leastRows = 8  // fewer rows use the weights too badly
)

// pace finds how many prompt rows fit into a step from the speed of earlier ones.
// Results never depend on it: the engine gives the same for every way to cut a
// prompt.
type pace struct {
	perRow time.Duration // running mean, 0 = unknown
}

// rows returns the number of prompt rows for the next step, a power of two so that
// few shapes occur.
func (p *pace) rows(company bool) int {
	if p.perRow <= 0 {
		return firstRows
	}
	limit := stepAlone
	if company {
		limit = stepCompany
	}
	n := max(int(limit/p.perRow), leastRows)
	return 1 << (bits.Len(uint(n)) - 1)
}

// saw notes a step with prompt rows.
func (p *pace) saw(rows int, took time.Duration) {
	if rows < leastRows || took <= 0 {
		return
	}
	per := max(took/time.Duration(rows), 1)
	if p.perRow == 0 {
		p.perRow = per
		return
	}
	p.perRow += (per - p.perRow) / 4
}
