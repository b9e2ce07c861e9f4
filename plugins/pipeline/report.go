package pipeline

import "time"

// Outcome is how a plugin came through a request.
type Outcome string

// The outcomes.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeIdle      Outcome = "not interested"
	OutcomeSkipped   Outcome = "skipped"   // it failed and the request went on without it
	OutcomeRestarted Outcome = "restarted" // it failed once
	OutcomeFailed    Outcome = "failed"    // the request failed with it
)

// Report is what a plugin did and cost in one request.
type Report struct {
	Name, Version, Hash string
	Outcome             Outcome
	Error               *Error // the latest; nil: none

	Calls     int
	Time      time.Duration
	Fuel      int64
	Changed   int // tokens: forced, chosen against the best, taken back, or steps whose best token it changed
	Rewritten int // pieces of text, the prompt included
	Rewinds   int
}

// Reports returns a report of each plugin, in the order in which they run.
func (p *Pipeline) Reports() []Report {
	out := make([]Report, len(p.plugins))
	for i, g := range p.plugins {
		out[i] = g.report
	}
	return out
}
