package sampling

// Names of the built-in stages, as requests name what they set.
const (
	StageBias        = "logit_bias"
	StagePenalties   = "penalties"
	StageTemperature = "temperature"
	StageTopK        = "top_k"
	StageTopP        = "top_p"
	StageMinP        = "min_p"
)

// Effect is what a built-in stage did at one step: the token that comes with it, and the one
// that would have come without it, drawn with the same random number, where nothing but the
// other built-in stages follow in both cases.
type Effect struct {
	Stage    string
	From, To int32
	Left     int     // tokens that a cut left
	Setting  float64 // the temperature of the step, where that is the stage
}

// Watcher hears what each built-in stage that is on did at a step, in their order, before
// the stages themselves are applied to d. Watching draws once for each stage from all
// candidates: it is for people who look at a text, not for every request.
type Watcher interface {
	Watch(d *Distribution, temperature float64, e Effect)
}

// watchEdits tells of bias and penalties.
func (c *Chain) watchEdits(d *Distribution, temperature float64) {
	w := c.p.Watcher
	if w == nil {
		return
	}
	with, ok := d.Outcome(temperature)
	for i, name := range c.editNames {
		if name == "" || !ok {
			continue
		}
		o := d.aside()
		for j, e := range c.edits {
			if j != i {
				e.Apply(o)
			}
		}
		o.rest.edits = false
		if without, ok := c.outcome(o, temperature); ok {
			w.Watch(d, temperature, Effect{Stage: name, From: without.ID, To: with})
		}
	}
}

// watchFilters tells of the temperature and the cuts behind it.
func (c *Chain) watchFilters(d *Distribution, temperature float64) {
	w := c.p.Watcher
	if w == nil || c.greedyAt(temperature) {
		return
	}
	u := uniform(c.p.Seed, d.rest.position)
	filtered := func(skip int) (pick Candidate, left [4]int, ok bool) {
		o := d.aside()
		if skip >= 0 && temperature != 1 {
			temperatureStage(temperature).Apply(o)
		}
		for i, f := range c.cuts {
			if i+1 != skip {
				f.Apply(o)
				left[i] = o.histogram().count()
			}
		}
		pick, ok = draw(o, u)
		return pick, left, ok
	}
	with, left, ok := filtered(len(c.cuts) + 1)
	if !ok {
		return
	}
	for i := range len(c.cuts) + 1 {
		e := Effect{Stage: StageTemperature, To: with.ID, Setting: temperature}
		skip := -1
		switch {
		case i > 0:
			e.Stage, e.Left, e.Setting, skip = c.cutNames[i-1], left[i-1], 0, i
		case temperature == 1 || temperature != c.p.Temperature: // else a plugin set it, which tells so
			continue
		}
		if without, _, ok := filtered(skip); ok {
			e.From = without.ID
			w.Watch(d, temperature, e)
		}
	}
}

// count returns how many candidates that can be drawn are left.
func (h *histogram) count() (n int) {
	for _, f := range h.fine[:h.last+1] {
		n += int(f >> 32)
	}
	return n
}

// unplugged are the plugins of a chain that is only watched.
type unplugged struct{}

var _ Plugins = unplugged{}

func (unplugged) Needs(int) Needs                                    { return Needs{View: Best} }
func (unplugged) Early(_ *Distribution, t float64) (float64, error)  { return t, nil }
func (unplugged) Late(_ *Distribution, t float64) (float64, error)   { return t, nil }
func (unplugged) Choose(*Distribution, float64) (int32, bool, error) { return 0, false, nil }
func (unplugged) Came(int32)                                         {}
func (unplugged) CameForced(int32, int32)                            {}
