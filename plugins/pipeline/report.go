package pipeline

import (
	"time"

	"ganglion/plugins/abi"
)

// Outcome is how a plugin came through a request.
type Outcome string

// The outcomes.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeIdle      Outcome = "not interested"
	OutcomeSkipped   Outcome = "skipped"   // it failed, or is not of use, and the request went on without it
	OutcomeRestarted Outcome = "restarted" // it failed once
	OutcomeFailed    Outcome = "failed"    // the request failed with it
)

// ReasonGreedy is why a plugin was left out that never changes the likeliest token.
const ReasonGreedy = "greedy"

// ReasonUnopened is why a plugin was left out whose request failed, or was cancelled, before
// its turn to open.
const ReasonUnopened = "unopened"

// Report is what a plugin did and cost in one request.
type Report struct {
	Name, Version, Hash string
	Outcome             Outcome
	Reason              string // why it was left out from the start; empty: it was not
	Error               *Error // the latest; nil: none

	Calls    int           // of hooks
	Time     time.Duration // of the hooks of steps
	Fuel     int64         // of these
	OnceTime time.Duration // of opening, and of the hooks prompt and end
	OnceFuel int64

	Changed   int // tokens: forced, chosen against the best, taken back, or steps whose best token it changed
	Rewritten int // pieces of text, the prompt included
	Rewinds   int
}

// called adds what a call of a hook took.
func (r *Report) called(h abi.Hook, fuel int64, took time.Duration) {
	r.Calls++
	if h == abi.HookPrompt || h == abi.HookEnd {
		r.spent(fuel, took)
		return
	}
	r.Fuel += fuel
	r.Time += took
}

// spent adds what was spent outside of steps.
func (r *Report) spent(fuel int64, took time.Duration) {
	r.OnceFuel += fuel
	r.OnceTime += took
}

// Reports returns a report of each plugin, in the order in which they run.
func (p *Pipeline) Reports() []Report {
	out := make([]Report, len(p.plugins))
	for i, g := range p.plugins {
		out[i] = g.report
	}
	return out
}
