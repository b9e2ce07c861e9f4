package host

import (
	"math"
	"sync"
	"time"
)

// codeTime is how long the code of a file may run while it is loaded: what it does at its
// start, and its tests. Fuel bounds each call, and what fuel pays for takes a third of a
// second, unless the guest looks for what is slow.
const codeTime = 2 * time.Second

// errLate is what a guest that ran into a deadline is told.
const errLate = "it is not done after %v"

// noFuel is −2⁶² as globals hold it: no fuel makes up for it.
const noFuel = 3 << 62

// deadline ends guests that run at a time, by taking their fuel. That makes what comes of a
// call a question of time, so it is for loading alone: requests repeat.
type deadline struct {
	end  time.Time
	time time.Duration // that was given

	mu   sync.Mutex // of the fuel of the guest that runs
	over bool
}

func newDeadline(d time.Duration) *deadline { return &deadline{end: time.Now().Add(d), time: d} }

// late tells whether the time is over.
func (d *deadline) late() bool { return d != nil && time.Now().After(d.end) }

// watch ends a call of a guest at the end of the time; to be released when the call is over.
func (d *deadline) watch(i *Instance) (release func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for wait := time.Until(d.end); ; wait = 10 * time.Millisecond {
			select {
			case <-done:
				return
			case <-time.After(wait):
			}
			// The guest may be about to write there itself: again and again.
			d.mu.Lock()
			d.over = true
			i.g.rest.Set(noFuel)
			d.mu.Unlock()
		}
	}()
	return func() {
		close(done)
		<-gone
	}
}

// taken is fuel that a guest whose time is over does not get.
func (d *deadline) taken(all int64) int64 {
	if d.over {
		return min(all, math.MinInt64/4)
	}
	return all
}
