package sampling

import "math"

// Plugins are stages that are not built in. They run at their own places of a chain and
// may fail, which fails the step. A chain calls the methods in their order, once each a
// step.
type Plugins interface {
	// Needs returns what they must see of a step before which more tokens are accepted.
	// Where it is Best, the other methods change nothing at that step. Where it is Top,
	// they look at the best K tokens and at statistics and at most cut the tokens to some
	// of those, or set a temperature: they change no logit. They may do more where they
	// get a row.
	Needs(more int) Needs
	// Early edits what the model said, before logit_bias and penalties, and returns the
	// temperature as it is then.
	Early(d *Distribution, temperature float64) (float64, error)
	// Late edits what those left, and returns the temperature of the step.
	Late(d *Distribution, temperature float64) (float64, error)
	// Choose picks one of the tokens that the filters let stay; ok is false where the
	// draw is to do that.
	Choose(d *Distribution, temperature float64) (id int32, ok bool, err error)
	// Came hears of the token of a step whose other methods were called.
	Came(id int32)
	// CameForced hears of a token that was settled before the step, and of the one that would
	// have come in its place, which is below 0 where that is not known.
	CameForced(id, instead int32)
}

// chooseWith is Choose with plugins: their temperature decides whether a step is greedy.
func (c *Chain) chooseWith(in *Input, position int, s *Scratch) (Choice, error) {
	plugins := c.p.Plugins
	if plugins == nil {
		plugins = unplugged{}
	}
	d := c.begin(in, position, s)
	t, err := plugins.Early(d, c.p.Temperature)
	if err != nil {
		return Choice{}, err
	}
	c.watchEdits(d, t)
	for _, e := range c.edits {
		e.Apply(d)
	}
	d.rest.edits = false
	if t, err = plugins.Late(d, t); err != nil {
		return Choice{}, err
	}
	greedy := c.greedyAt(t)
	c.watchFilters(d, t)
	if !greedy {
		c.filter(d, t)
	}
	d.rest.filtered = true
	id, ok, err := plugins.Choose(d, t)
	if err == nil && !ok {
		id, err = c.pick(d, greedy, position)
	}
	if err != nil {
		return Choice{}, err
	}
	plugins.Came(id)
	return Choice{ID: id, Logprob: Logprob(in.logit(id), in.LogSumExp)}, nil
}

// begin makes the distribution of a step with plugins.
func (c *Chain) begin(in *Input, position int, s *Scratch) *Distribution {
	d := s.load(in)
	suppressStage(c.p.Suppressed).Apply(d)
	d.rest = rest{chain: c, position: position, edits: true}
	return d
}

// pick takes a token of what the filters left.
func (c *Chain) pick(d *Distribution, greedy bool, position int) (int32, error) {
	var pick Candidate
	var ok bool
	if greedy {
		pick, ok = d.best()
	} else {
		pick, ok = draw(d, uniform(c.p.Seed, position))
	}
	if !ok {
		return 0, ErrNoCandidate
	}
	return pick.ID, nil
}

// Force is the choice of a token that plugins settled before the step.
func (c *Chain) Force(in *Input, id int32, position int, s *Scratch) Choice {
	if instead, ok := c.begin(in, position, s).Outcome(c.p.Temperature); ok {
		c.p.Plugins.CameForced(id, instead)
	} else {
		c.p.Plugins.CameForced(id, -1)
	}
	l := float32(math.NaN())
	if in.Row == nil || int(id) < len(in.Row) {
		l = in.logit(id)
	}
	return Choice{ID: id, Logprob: Logprob(l, in.LogSumExp)}
}

// Random returns the random words of a counter under a key: Philox4x32-10, a pure
// function. The counter's words are (sequence, step, hook, draw); the built-in draw has
// hook 0, so code that is not built in never meets it with another hook.
func Random(key uint64, counter [4]uint32) [4]uint32 {
	return philox(counter, [2]uint32{uint32(key), uint32(key >> 32)})
}
