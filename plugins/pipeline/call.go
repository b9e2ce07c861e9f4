package pipeline

import (
	"ganglion/plugins/abi"
	"ganglion/plugins/sampling"
)

// fill fills what every hook reads for a step and returns the frame.
func (p *Pipeline) fill(g *plugin, h abi.Hook, step int, flags uint32) frame {
	f := g.frame()
	if p.o.greedy() {
		flags |= abi.FlagGreedy
	}
	if step == 0 {
		flags |= abi.FlagFirst
	}
	if step == p.o.Max-1 {
		flags |= abi.FlagLast
	}
	last := uint32(abi.NoToken)
	if n := len(p.tokens); n > 0 {
		last = uint32(p.tokens[n-1])
	}
	f.put(abi.OffHook, uint32(h))
	f.put(abi.OffFlags, flags)
	f.put(abi.OffStep, uint32(step))
	f.put(abi.OffPosition, uint32(p.prompt+step))
	f.put(abi.OffSequence, uint32(p.o.Sequence))
	f.put(abi.OffVocab, uint32(p.o.Vocab))
	f.put(abi.OffLastToken, last)
	f.put(abi.OffNPrompt, uint32(p.prompt))
	f.put(abi.OffNGenerated, uint32(len(p.tokens)-p.prompt))
	if f.l.HistoryCap > 0 {
		g.hist.write(f, p.tokens, p.historyStart(g))
	}
	p.random(f, g, step, h)
	return f
}

// random writes the eight words of a call: draws 0 and 1 of its counter.
func (p *Pipeline) random(f frame, g *plugin, step int, h abi.Hook) {
	for draw := range uint32(abi.RandomWords / 4) {
		w := sampling.Random(g.key, [4]uint32{uint32(p.o.Sequence), uint32(step), uint32(h), draw})
		for i, v := range w {
			f.put(abi.OffRandom+4*(4*int(draw)+i), v)
		}
	}
}

// historyStart is the first token of a plugin's history.
func (p *Pipeline) historyStart(g *plugin) int {
	switch h := g.spec.Manifest.View.History; h.Kind {
	case abi.HistoryGenerated:
		return p.prompt
	case abi.HistoryLast:
		return max(len(p.tokens)-h.N, 0)
	}
	return 0
}

// call calls a hook whose frame is filled, and counts what it cost.
func (p *Pipeline) call(g *plugin, h abi.Hook) (actions abi.Action, e *Error) {
	from, fuel := p.o.Now(), int64(0)
	defer func() {
		g.report.called(h, fuel, p.o.Now().Sub(from))
		if v := recover(); v != nil {
			e = g.fault(p.now(), codePanic, "%v", v)
		}
	}()
	actions, fuel, err := g.in.Call(h)
	if err != nil {
		return 0, g.called(p.now(), err)
	}
	if more := actions &^ h.Allowed(); more != 0 {
		return 0, g.fault(p.now(), codeAction, "hook %s may not return %s", h, more)
	}
	return actions, nil
}

// frame returns the frame as it is now: a call may have moved the memory.
func (g *plugin) frame() frame { return frame{g.in.Frame(), g.in.Layout()} }

// now is the step that comes next.
func (p *Pipeline) now() int { return len(p.tokens) - p.prompt }
