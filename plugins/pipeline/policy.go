package pipeline

import (
	"context"
	"errors"

	"ganglion/plugins/abi"
)

// open makes a plugin's instance and gets to know it.
func (p *Pipeline) open(g *plugin) (e *Error) {
	defer func() {
		if v := recover(); v != nil {
			e = g.fault(-1, codePanic, "%v", v)
		}
	}()
	in, err := g.spec.Open(g.report.spent)
	if err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			p.left = err
		}
		return g.opened(err)
	}
	if in == nil {
		g.report.Outcome = OutcomeIdle
		return nil
	}
	g.in = in
	g.actor = in.Has(abi.HookPlan) || in.Has(abi.HookLogits)
	g.wake, g.planned = 0, 0
	g.hist.forget()
	g.gathered = in.Gathered()
	return nil
}

// leave takes a plugin out of the request.
func (g *plugin) leave() {
	if g.in != nil {
		g.in.Close() // what it could report, its calls have reported
		g.in = nil
	}
}

// failed handles a plugin's failure by its policy: nil when the request goes on, without
// the plugin or with a new instance of it.
func (p *Pipeline) failed(g *plugin, e *Error) *Error {
	g.report.Error = e
	g.leave()
	policy := g.spec.OnError
	if policy == Restart && !g.restarted && e.Step >= 0 {
		g.restarted = true
		again := p.reopen(g)
		if again == nil {
			g.replan = true
			g.report.Outcome = OutcomeRestarted
			p.warn(e)
			g.gone()
			return nil
		}
		g.leave()
		if p.left == nil {
			e = again
		}
	}
	if policy == Skip {
		g.report.Outcome = OutcomeSkipped
		if g == p.chooser {
			p.chooser = nil
		}
		p.warn(e)
		g.gone()
		return nil
	}
	g.report.Outcome, g.report.Error = OutcomeFailed, e
	return e
}

// gone says so when a plugin is no longer in the request.
func (g *plugin) gone() {
	if g.in == nil && g.spec.Left != nil {
		g.spec.Left()
	}
}

func (p *Pipeline) warn(e *Error) {
	if p.o.Warn != nil {
		p.o.Warn(e)
	}
}

// reopen makes a new instance and lets it read the prompt and the text so far.
func (p *Pipeline) reopen(g *plugin) *Error {
	g.leave()
	if e := p.open(g); e != nil || g.in == nil {
		return e
	}
	if e := p.promptAgain(g); e != nil || !g.in.Has(abi.HookAccept) {
		return e
	}
	// Each token is told as it was the first time: alone, with what stood before it.
	whole := p.tokens
	defer func() { p.tokens, p.replayed = whole, -1 }()
	for at := range whole[p.prompt:] {
		end := p.prompt + at + 1
		p.tokens, p.replayed = whole[:end], at+1
		if _, e := p.acceptOne(g, at, whole[end-1:end], abi.FlagReplay); e != nil {
			return e
		}
	}
	return nil
}

// Replayed tells how many tokens of the text a plugin has heard of that reads it again,
// the one it is told of included; ok is false where none reads it again. Hooks may ask.
func (p *Pipeline) Replayed() (tokens int, ok bool) { return p.replayed, p.replayed >= 0 }

// try does something with a plugin. A plugin that was restarted tries again.
func (p *Pipeline) try(g *plugin, do func(*Pipeline, *plugin) *Error) *Error {
	for g.in != nil {
		e := do(p, g)
		if e == nil {
			return nil
		}
		if e = p.failed(g, e); e != nil {
			return e
		}
	}
	return nil
}

// asError keeps a nil *Error from becoming an error that is not nil.
func asError(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}
