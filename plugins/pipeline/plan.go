package pipeline

import (
	"math"

	"ganglion/plugins/abi"
)

// Plan lets the plugins plan the step that comes next. It needs nothing of the model,
// so it may run while the model computes.
func (p *Pipeline) Plan() error {
	p.save()
	step := p.now()
	for _, g := range p.plugins {
		g.planned = 0
	}
	if p.taken < len(p.forced) {
		return nil // nothing is to be decided
	}
	for _, g := range p.plugins {
		if !g.acts(step) || !g.in.Has(abi.HookPlan) {
			continue
		}
		if e := p.try(g, (*Pipeline).planOne); e != nil {
			return e
		}
	}
	return nil
}

// planOne lets one plugin plan. What it planned for the distribution stays in its frame
// until its turn comes.
func (p *Pipeline) planOne(g *plugin) *Error {
	step := p.now()
	f := p.fill(g, abi.HookPlan, step, 0)
	f.putF(abi.OffTemperature, float32(p.o.Temperature))
	actions, e := p.call(g, abi.HookPlan)
	if e != nil {
		return e
	}
	f = g.frame()
	if actions&abi.Mask != 0 && f.l.Mask == 0 {
		return g.fault(step, codeAction, "MASK without view.mask")
	}
	if actions&abi.Temp != 0 {
		if g.planTemp, e = g.temperature(f, step); e != nil {
			return e
		}
	}
	if actions&abi.Idle != 0 {
		g.wake = g.wakeStep(f, step)
	}
	if e := p.ahead(g, f, actions); e != nil {
		return e
	}
	g.planned = actions
	return nil
}

// temperature reads the temperature that a plugin set.
func (g *plugin) temperature(f frame, step int) (float64, *Error) {
	t := float64(f.getF(abi.OffTemperature))
	if !(t >= 0) || math.IsInf(t, 0) {
		return 0, g.fault(step, codeAction, "TEMP with the temperature %g", t)
	}
	return t, nil
}

// wakeStep reads the step until which a plugin sleeps.
func (g *plugin) wakeStep(f frame, step int) int {
	return max(int(f.get(abi.OffWakeStep)), step+1)
}

// ahead notes tokens that a plugin forces and the end that it wants. The first plugin
// that forces has its way; the others see what came in accept.
func (p *Pipeline) ahead(g *plugin, f frame, actions abi.Action) *Error {
	step := p.now()
	if actions&abi.Stop != 0 {
		r := abi.StopReason(f.get(abi.OffStopReason))
		if r < abi.StopStop || r > abi.StopError {
			return g.fault(step, codeAction, "STOP with the reason %d", r)
		}
		if p.stop == 0 {
			p.stop = r
		}
	}
	if actions&abi.Force == 0 {
		return nil
	}
	if n := f.get(abi.OffOutN); n > abi.MaxForced {
		return g.fault(step, codeQuota, "%d tokens forced at one step, at most %d may be", n, abi.MaxForced)
	}
	if p.taken < len(p.forced) {
		return nil
	}
	forced, ok := f.tokens(p.forced[:0], p.o.Vocab)
	if !ok {
		return g.fault(step, codeAction, "FORCE with tokens that are none or too many")
	}
	p.forced, p.taken = forced, 0
	if len(forced) > 0 {
		g.report.Changed += len(forced)
	}
	return nil
}

// Stopped tells for what reason a plugin wants the text to end here, 0 when none does.
func (p *Pipeline) Stopped() abi.StopReason { return p.stop }

// Forced returns the tokens that come next whatever the model says. The slice is valid
// until the next hook.
func (p *Pipeline) Forced() []int32 { return p.forced[p.taken:] }

// NextForced takes the first of these; ok is false when there is none.
func (p *Pipeline) NextForced() (id int32, ok bool) {
	if p.taken == len(p.forced) {
		return 0, false
	}
	p.taken++
	return p.forced[p.taken-1], true
}
