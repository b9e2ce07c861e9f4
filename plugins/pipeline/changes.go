package pipeline

import "ganglion/plugins/sampling"

// Kind is what a plugin did to one token.
type Kind string

// The kinds.
const (
	ChangeMoved   Kind = "moved"   // it changed the distribution so that another token comes; From would have come
	ChangeActed   Kind = "acted"   // it changed the distribution, and the same token comes
	ChangeChosen  Kind = "chosen"  // it picked the token; From would have been drawn
	ChangeForced  Kind = "forced"  // the token came whatever the model said; From would have come
	ChangeRewound Kind = "rewound" // it took back what stood here; From was the token here
	ChangeText    Kind = "text"    // it rewrote the text that came with the token
)

// NoToken is From where no other token is meant.
const NoToken = -1

// Change is one thing that a plugin did to a token.
//
// Of plugins that change the distribution, each is compared with the state that it met: the
// token that comes of what it left, and the one that would have come of what it met, drawn
// with the same random number, if nothing but the built-in stages followed. So where one
// plugin runs, a token is counted as changed exactly when without the plugin another one
// would have come at this place, whatever it did: edits, a mask, a cut, a temperature.
type Change struct {
	Plugin      string
	Stage       string // a built-in one, in the place of a plugin: one of package sampling's names
	Kind        Kind
	From        int32
	Left        int     // tokens that it left where it cut them; 0: it cut none
	Temperature float64 // that it set; below 0: it set none
}

// move tells that the plugin that acts is about to change something: what would come
// without that is what comes with the plugins before it.
func (p *Pipeline) move() {
	if p.moves {
		return
	}
	p.moves, p.was = true, NoToken
	if id, ok := p.d.Outcome(p.temperature); ok {
		p.was = id
	}
	p.settleMove(p.was)
	p.met = p.d.Len()
}

// moved tells that it did so.
func (p *Pipeline) moved(g *plugin, temperature float64) {
	left := p.d.Len()
	if left >= p.met {
		left = 0
	}
	p.mover, p.effect = g, Change{From: p.was, Left: left, Temperature: -1}
	if p.temperature != temperature {
		p.effect.Temperature = p.temperature
	}
}

// settleMove tells which token comes behind the latest plugin that changed something.
func (p *Pipeline) settleMove(id int32) {
	g := p.mover
	if g == nil {
		return
	}
	p.mover = nil
	kind := ChangeActed
	if id != p.effect.From {
		kind = ChangeMoved
		g.report.Changed++
	}
	if p.o.Changes {
		p.effect.Plugin, p.effect.Kind = g.spec.Manifest.Name, kind
		p.changes = append(p.changes, p.effect)
	}
}

// Came implements sampling.Plugins.
func (p *Pipeline) Came(id int32) { p.settleMove(id) }

// Watch implements sampling.Watcher, for sequences whose built-in stages are told as well.
func (p *Pipeline) Watch(d *sampling.Distribution, temperature float64, e sampling.Effect) {
	if p.mover != nil {
		if id, ok := d.Outcome(temperature); ok {
			p.settleMove(id)
		}
	}
	p.changes = append(p.changes, Built(&e))
}

// Built is what a built-in stage did as a change.
func Built(e *sampling.Effect) Change {
	c := Change{Stage: e.Stage, Kind: ChangeActed, From: e.From, Left: e.Left, Temperature: -1}
	if e.From != e.To {
		c.Kind = ChangeMoved
	}
	if e.Stage == sampling.StageTemperature {
		c.Temperature = e.Setting
	}
	return c
}

// CameForced implements sampling.Plugins.
func (p *Pipeline) CameForced(id, instead int32) {
	if instead != id {
		p.forcer.report.Changed++
	}
	p.changed(p.forcer, ChangeForced, instead)
}

// changed notes what a plugin did to the token that is being made, where the options ask
// for that.
func (p *Pipeline) changed(g *plugin, k Kind, from int32) {
	if p.o.Changes {
		p.changes = append(p.changes, Change{Plugin: g.spec.Manifest.Name, Kind: k, From: from, Temperature: -1})
	}
}

// Changes returns what was done to the latest token, in the order in which it happened,
// and begins anew; nil where nothing was, or the options do not ask for it. It is called
// once a token, behind its text hooks.
func (p *Pipeline) Changes() []Change {
	if len(p.changes) == 0 {
		return nil
	}
	out := append([]Change(nil), p.changes...)
	p.changes = p.changes[:0]
	return out
}
