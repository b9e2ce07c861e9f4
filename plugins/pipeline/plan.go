package pipeline

import (
	"math"

	"slices"

	"ganglion/plugins/abi"
	"ganglion/plugins/sampling"
)

// Plan lets the plugins plan the step that comes next. It needs nothing of the model,
// so it may run while the model computes. Where a token is forced, only those plan that
// constrain: one that they take out does not come, nor do those behind it.
func (p *Pipeline) Plan() error {
	p.save()
	step := p.now()
	for _, g := range p.plugins {
		g.planned, g.asked, g.replan = 0, false, false
	}
	for {
		for _, g := range p.plugins {
			if g.asked || !g.acts(step) || !g.in.Has(abi.HookPlan) || p.pending() && !p.mayRefuse(g) {
				continue
			}
			g.asked = true
			if e := p.try(g, (*Pipeline).planOne); e != nil {
				return e
			}
		}
		if !p.pending() || !p.refused(p.forced[p.taken]) {
			return nil
		}
		p.forced, p.taken = p.forced[:0], 0 // the step is one as any other
	}
}

// pending tells whether a token is forced.
func (p *Pipeline) pending() bool { return p.taken < len(p.forced) }

// mayRefuse tells whether a plugin is asked about what another one forces.
func (p *Pipeline) mayRefuse(g *plugin) bool {
	return g.spec.Manifest.Slot == abi.SlotConstrain && g != p.forcer
}

// MayRefuse tells whether forced tokens may not come after all.
func (p *Pipeline) MayRefuse() bool {
	for _, g := range p.plugins {
		if g.in != nil && p.mayRefuse(g) && g.in.Has(abi.HookPlan) {
			return true
		}
	}
	return false
}

// refused tells whether a plugin that constrains took a token out in its plan.
func (p *Pipeline) refused(id int32) bool {
	for _, g := range p.plugins {
		if g.in == nil || g.planned == 0 || !p.mayRefuse(g) {
			continue
		}
		f := g.frame()
		if g.planned&abi.Mask != 0 && f.b[f.l.Mask+int(id)/8]>>(id%8)&1 == 0 {
			return true
		}
		if g.planned&abi.Edits == 0 {
			continue
		}
		p.edits, _ = f.edits(p.edits[:0])
		for _, e := range p.edits {
			if e.ID == id && e.Op == sampling.OpBan {
				return true
			}
		}
	}
	return false
}

// planOne lets one plugin plan. What it planned for the distribution stays in its frame
// until its turn comes.
func (p *Pipeline) planOne(g *plugin) *Error {
	g.replan = false
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
	if p.pending() {
		return nil
	}
	forced, e := p.force(g, f, p.forced[:0])
	if e != nil {
		return e
	}
	p.forced, p.taken, p.forcer = forced, 0, g
	return nil
}

// force reads the tokens that a plugin forces.
func (p *Pipeline) force(g *plugin, f frame, dst []int32) ([]int32, *Error) {
	dst, ok := f.tokens(dst, p.o.Vocab)
	if !ok {
		return nil, g.fault(p.now(), codeAction, "FORCE with tokens that are none or too many")
	}
	for _, id := range dst {
		if slices.Contains(p.o.Suppressed, id) {
			return nil, g.fault(p.now(), codeAction, "FORCE of token %d, which the model never makes", id)
		}
	}
	return dst, nil
}

// Stopped tells for what reason a plugin wants the text to end here, 0 when none does.
func (p *Pipeline) Stopped() abi.StopReason { return p.stop }

// Forced returns the tokens that come next whatever the model says. The slice is valid
// until the next hook.
func (p *Pipeline) Forced() []int32 { return p.forced[p.taken:] }

// NextForced takes the first of these, of which the chain is told with Chain.Force; ok is
// false when there is none.
func (p *Pipeline) NextForced() (id int32, ok bool) {
	if !p.pending() {
		return 0, false
	}
	p.taken++
	return p.forced[p.taken-1], true
}
