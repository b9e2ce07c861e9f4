package sampling

import "math"

// Plugins are stages that are not built in. They run at their own places of a chain and
// may fail, which fails the step. A chain calls the methods in their order, once each a
// step.
type Plugins interface {
	// Needs returns what they must see of a step before which more tokens are accepted.
	// Where it is Best, the other methods change nothing at that step.
	Needs(more int) Needs
	// Early edits what the model said, before logit_bias and penalties.
	Early(d *Distribution) error
	// Late edits what those left, and returns the temperature of the step.
	Late(d *Distribution, temperature float64) (float64, error)
	// Choose picks one of the tokens that the filters let stay; ok is false where the
	// draw is to do that.
	Choose(d *Distribution, temperature float64) (id int32, ok bool, err error)
}

// chooseWith is Choose with plugins: their temperature decides whether a step is greedy.
func (c *Chain) chooseWith(in *Input, position int, s *Scratch) (Choice, error) {
	plugins := c.p.Plugins
	d := s.load(in)
	suppressStage(c.p.Suppressed).Apply(d)
	if err := plugins.Early(d); err != nil {
		return Choice{}, err
	}
	for _, e := range c.edits {
		e.Apply(d)
	}
	t, err := plugins.Late(d, c.p.Temperature)
	if err != nil {
		return Choice{}, err
	}
	greedy := t == 0 || c.cutsToOne()
	if !greedy {
		if t != 1 {
			temperatureStage(t).Apply(d)
		}
		for _, f := range c.cuts {
			f.Apply(d)
		}
	}
	if id, ok, err := plugins.Choose(d, t); ok || err != nil {
		return Choice{ID: id, Logprob: Logprob(in.logit(id), in.LogSumExp)}, err
	}
	var pick Candidate
	var ok bool
	if greedy {
		pick, ok = d.best()
	} else {
		pick, ok = draw(d, uniform(c.p.Seed, position))
	}
	if !ok {
		return Choice{}, ErrNoCandidate
	}
	return Choice{ID: pick.ID, Logprob: Logprob(in.logit(pick.ID), in.LogSumExp)}, nil
}

// Force is the choice of a token that was settled before the step.
func Force(in *Input, id int32) Choice {
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
