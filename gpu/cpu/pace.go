//go:build cgo

package cpu

import "time"

// pace is how many threads take part in a batch. When another process keeps a processor
// busy, the thread that shares it holds all others up at every barrier, and decoding is
// slower than without that thread. Results do not depend on the number of threads, so one
// that is kept from running for a sixth of two batches in a row is left out, and tried
// again after a while, which doubles as long as nothing has changed.
type pace struct {
	most, active int
	strikes      int // crowded batches in a row
	clean        int // batches that were not, since all threads came back
	hold         time.Duration
	until        time.Duration // when to try again, on the clock of next and ran
}

const (
	crowdedShare = 6 // of a batch's time: 1/6
	crowdedLeast = time.Millisecond
	crowdedTwice = 2
	cleanEnough  = 8
	shortHold    = 200 * time.Millisecond
	longHold     = 1600 * time.Millisecond
)

func newPace(threads int) pace {
	return pace{most: threads, active: threads, clean: cleanEnough, hold: shortHold}
}

// next is the number of threads for a batch that begins now.
func (p *pace) next(now time.Duration) int {
	if p.active < p.most && now >= p.until {
		p.active, p.strikes, p.clean = p.most, 0, 0
	}
	return p.active
}

// ran takes note of a batch that took wall and ended now; stolen is the longest that one
// of its threads was ready to run and did not.
func (p *pace) ran(now, wall, stolen time.Duration) {
	if stolen < crowdedLeast || stolen*crowdedShare < wall {
		p.strikes = 0
		if p.active == p.most {
			if p.clean++; p.clean == cleanEnough {
				p.hold = shortHold
			}
		}
		return
	}
	p.strikes++
	again := p.active == p.most && p.clean < cleanEnough // it was so before the pause
	if p.active == 1 || (p.strikes < crowdedTwice && !again) {
		return
	}
	if again {
		p.hold = min(2*p.hold, longHold)
	}
	p.active--
	p.strikes = 0
	p.until = now + p.hold
}
