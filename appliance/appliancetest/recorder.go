package appliancetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"ganglion/appliance"
)

// Recorder keeps records in memory. The zero value is ready; it is safe for
// concurrent use.
type Recorder struct {
	mu     sync.Mutex
	begun  []appliance.Record
	ended  []appliance.Record
	faults []string
}

var _ appliance.Recorder = (*Recorder)(nil)

// Begin implements appliance.Recorder.
func (r *Recorder) Begin(_ context.Context, rec *appliance.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.Outcome != appliance.OutcomeOpen {
		r.faults = append(r.faults, "Begin of "+rec.ID+" with outcome "+string(rec.Outcome))
	}
	if index(r.begun, rec.ID) >= 0 {
		r.faults = append(r.faults, "second Begin of "+rec.ID)
	}
	r.begun = append(r.begun, *rec)
}

// End implements appliance.Recorder.
func (r *Recorder) End(rec *appliance.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if index(r.begun, rec.ID) < 0 {
		r.faults = append(r.faults, "End without Begin of "+rec.ID)
	}
	if index(r.ended, rec.ID) >= 0 {
		r.faults = append(r.faults, "second End of "+rec.ID)
	}
	r.ended = append(r.ended, *rec)
}

func index(records []appliance.Record, id string) int {
	return slices.IndexFunc(records, func(r appliance.Record) bool { return r.ID == id })
}

// Begun returns the records as they were opened, in order.
func (r *Recorder) Begun() []appliance.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.begun)
}

// Ended returns the records as they were closed, in order.
func (r *Recorder) Ended() []appliance.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ended)
}

// Faults returns how the rules of appliance.Recorder were broken: a record that is
// opened or closed twice, or closed without having been opened.
func (r *Recorder) Faults() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.faults)
}

// Clock is a clock that moves only when it is told to. It is safe for concurrent
// use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows t.
func NewClock(t time.Time) *Clock { return &Clock{now: t} }

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
