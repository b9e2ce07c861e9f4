package pipeline

import (
	"ganglion/plugins/abi"
	"ganglion/plugins/sampling"
)

// Early implements sampling.Plugins: slots constrain, bias and text.
func (p *Pipeline) Early(d *sampling.Distribution, temperature float64) (float64, error) {
	p.temperature, p.mover = temperature, nil
	e := p.pass(d, true)
	return p.temperature, asError(e)
}

// Late implements sampling.Plugins: slots truncate, temperature and choose.
func (p *Pipeline) Late(d *sampling.Distribution, temperature float64) (float64, error) {
	p.temperature = temperature
	e := p.pass(d, false)
	return p.temperature, asError(e)
}

// pass lets the plugins on one side of logit_bias act, in their order.
func (p *Pipeline) pass(d *sampling.Distribution, early bool) *Error {
	p.d = d
	step := p.now()
	for _, g := range p.plugins {
		// One that fell asleep while planning has its plan applied all the same.
		if g.early != early || g.in == nil || g.planned == 0 && !g.acts(step) {
			continue
		}
		if e := p.try(g, (*Pipeline).act); e != nil {
			return e
		}
	}
	return nil
}

// act does what a plugin planned and asks for what it makes of the logits, all of it or,
// where the plugin fails, nothing.
func (p *Pipeline) act(g *plugin) *Error {
	temperature := p.temperature
	p.held, p.moves = false, false
	e := p.answer(g)
	switch {
	case e != nil:
		p.temperature = temperature
		if p.held {
			p.d.Restore(&p.before)
		}
	case p.moves:
		p.moved(g, temperature)
	}
	return e
}

// hold keeps the distribution as it is before the plugin that acts. One change alone undoes
// itself.
func (p *Pipeline) hold() {
	if !p.held {
		p.held = true
		p.d.Save(&p.before)
	}
}

func (p *Pipeline) answer(g *plugin) *Error {
	if e := p.planAgain(g); e != nil {
		return e
	}
	step := p.now()
	planned := g.planned
	g.planned = 0 // a new instance does not do it again
	logits := g.wake <= step && g.in.Has(abi.HookLogits)
	if changes := planned & (abi.Edits | abi.Mask); changes != 0 && (logits || changes&(changes-1) != 0) {
		p.hold()
	}
	if planned&abi.Temp != 0 {
		p.warm(g.planTemp)
	}
	if planned&abi.Edits != 0 {
		if e := p.edit(g, g.frame()); e != nil {
			return e
		}
	}
	if planned&abi.Mask != 0 {
		p.move()
		f := g.frame()
		if err := p.d.Mask(f.part(f.l.Mask, (p.o.Vocab+31)/32*4)); err != nil {
			return g.applied(step, "MASK", err)
		}
	}
	if !logits {
		return nil
	}
	return p.logits(g)
}

// planAgain lets a new instance plan the step that the one before it had planned, so that
// a constraint holds at this step too. It is too late to force a token.
func (p *Pipeline) planAgain(g *plugin) *Error {
	if !g.replan {
		return nil
	}
	if !g.acts(p.now()) || !g.in.Has(abi.HookPlan) {
		return nil
	}
	e := p.planOne(g)
	p.forced, p.taken = p.forced[:0], 0
	return e
}

// warm sets the temperature of the step, where it is not greedy.
func (p *Pipeline) warm(t float64) {
	if !p.o.greedy() && t != p.temperature {
		p.move()
		p.temperature = t
	}
}

// logits calls the hook of that name and does what it says.
func (p *Pipeline) logits(g *plugin) *Error {
	step := p.now()
	f := p.fill(g, abi.HookLogits, step, 0)
	p.view(g, f)
	actions, e := p.call(g, abi.HookLogits)
	if e != nil {
		return e
	}
	f = g.frame()
	if changes := actions & (abi.Full | abi.Cands | abi.Edits); changes&(changes-1) != 0 {
		p.hold()
	}
	if actions&abi.Temp != 0 {
		t, e := g.temperature(f, step)
		if e != nil {
			return e
		}
		p.warm(t)
	}
	if actions&abi.Full != 0 {
		if f.l.Full == 0 {
			return g.fault(step, codeAction, "FULL without view.logits full")
		}
		p.move()
		if err := p.d.Replace(f.part(f.l.Full, 4*p.o.Vocab)); err != nil {
			return g.applied(step, "FULL", err)
		}
	}
	if actions&abi.Cands != 0 {
		if e := p.keep(g, f); e != nil {
			return e
		}
	}
	if actions&abi.Edits != 0 {
		if e := p.edit(g, f); e != nil {
			return e
		}
	}
	if actions&abi.Idle != 0 {
		g.wake = g.wakeStep(f, step)
	}
	return nil
}

// view writes what a plugin wants to see of the distribution.
func (p *Pipeline) view(g *plugin, f frame) {
	stats := p.d.Stats()
	f.statistics(&stats)
	f.putF(abi.OffTemperature, float32(p.temperature))
	f.put(abi.OffCandN, 0)
	if f.l.CandCap > 0 {
		f.candidates(p.d)
	}
	if len(g.gathered) > 0 {
		f.gather(p.d, g.gathered)
	}
	if f.l.Full > 0 {
		p.d.CopyTo(f.part(f.l.Full, 4*p.o.Vocab), p.o.Vocab)
	}
}

// keep makes the candidates that a plugin left the distribution.
func (p *Pipeline) keep(g *plugin, f frame) *Error {
	step := p.now()
	if !g.spec.Manifest.Truncates {
		return g.fault(step, codeAction, "CANDS without truncates")
	}
	var ok bool
	if p.cands, ok = f.kept(p.cands[:0]); !ok {
		return g.fault(step, codeAction, "CANDS with %d candidates, there is room for %d", f.get(abi.OffCandN), f.l.CandCap)
	}
	p.move()
	if err := p.d.Keep(p.cands); err != nil {
		return g.applied(step, "CANDS", err)
	}
	return nil
}

// edit applies the edits in a plugin's frame.
func (p *Pipeline) edit(g *plugin, f frame) *Error {
	step := p.now()
	var ok bool
	if p.edits, ok = f.edits(p.edits[:0]); !ok {
		return g.fault(step, codeAction, "%d edits, there is room for %d", f.get(abi.OffEditN), f.l.EditCap)
	}
	for i := range p.edits {
		if int(p.edits[i].ID) >= p.o.Vocab {
			return g.fault(step, codeAction, "an edit of token %d of %d", p.edits[i].ID, p.o.Vocab)
		}
	}
	if len(p.edits) > 0 {
		p.move()
	}
	if err := p.d.Edit(p.edits); err != nil {
		return g.applied(step, "EDITS", err)
	}
	return nil
}

// Choose implements sampling.Plugins.
func (p *Pipeline) Choose(d *sampling.Distribution, temperature float64) (int32, bool, error) {
	if p.chooser == nil {
		return 0, false, nil
	}
	d.Settle()
	p.d, p.temperature, p.chosen, p.moves = d, temperature, false, false
	if e := p.try(p.chooser, (*Pipeline).choose); e != nil {
		return 0, false, e
	}
	return p.choice, p.chosen, nil
}

// choose lets the plugin that does so pick the token.
func (p *Pipeline) choose(g *plugin) *Error {
	step := p.now()
	p.view(g, p.fill(g, abi.HookChoose, step, 0))
	actions, e := p.call(g, abi.HookChoose)
	if e != nil || actions&abi.Token == 0 {
		return e
	}
	id := g.frame().get(abi.OffToken)
	if id >= uint32(p.o.Vocab) || !p.d.Has(int32(id)) {
		return g.fault(step, codeAction, "TOKEN with token %d, which is not left", id)
	}
	p.move()
	p.choice, p.chosen = int32(id), true
	if p.choice == p.was {
		p.changed(g, ChangeActed, p.was)
		return nil
	}
	g.report.Changed++
	p.changed(g, ChangeChosen, p.was)
	return nil
}
