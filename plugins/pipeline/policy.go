package pipeline

import (
	"encoding/binary"

	"ganglion/plugins/abi"
)

// open makes a plugin's instance and gets to know it.
func (p *Pipeline) open(g *plugin) (e *Error) {
	defer func() {
		if v := recover(); v != nil {
			e = g.fault(-1, codePanic, "%v", v)
		}
	}()
	in, err := g.spec.Open()
	if err != nil {
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
	g.gathered = g.gathered[:0]
	f := g.frame()
	for i := range f.l.GatherN {
		g.gathered = append(g.gathered, int32(binary.LittleEndian.Uint32(f.b[f.l.GatherIDs+4*i:])))
	}
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
			g.report.Outcome = OutcomeRestarted
			p.warn(e)
			return nil
		}
		g.leave()
		e = again
	}
	if policy == Skip {
		g.report.Outcome = OutcomeSkipped
		if g == p.chooser {
			p.chooser = nil
		}
		p.warn(e)
		return nil
	}
	g.report.Outcome, g.report.Error = OutcomeFailed, e
	return e
}

func (p *Pipeline) warn(e *Error) {
	if p.o.Warn != nil {
		p.o.Warn(e)
	}
}

// reopen makes a new instance and lets it read the text so far.
func (p *Pipeline) reopen(g *plugin) *Error {
	g.leave()
	if e := p.open(g); e != nil || g.in == nil || !g.in.Has(abi.HookAccept) {
		return e
	}
	text := p.tokens[p.prompt:]
	for at := 0; at < len(text); {
		n := min(len(text)-at, g.in.Layout().InCap/4)
		if n == 0 {
			return g.fault(p.now(), codeQuota, "the buffer for accepted tokens holds none")
		}
		if _, e := p.acceptOne(g, at, text[at:at+n], abi.FlagReplay); e != nil {
			return e
		}
		at += n
	}
	return nil
}

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
