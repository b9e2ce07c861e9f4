package sampling

// rest is what comes behind a point of a step: the place in its chain.
type rest struct {
	chain    *Chain // nil: no chain with plugins is at work
	position int
	edits    bool // logit_bias, penalties and what Params.Stages has
	filtered bool // temperature and filters lie behind
}

// Outcome returns the token that comes of the distribution as it is, at a temperature, if
// from here on only built-in stages act: what they and the draw, with the random number of
// the step, make of it. So a plugin's doing is told by asking before and after it. It
// changes nothing, views that were made included, and allocates nothing once its buffers
// have grown; where a view of the best tokens was made it mostly looks at these alone. ok is
// false where no token is left, and outside of a chain with plugins.
func (d *Distribution) Outcome(temperature float64) (id int32, ok bool) {
	at := &d.rest
	if at.chain == nil {
		return 0, false
	}
	// Suppressed tokens are out already.
	if p := &at.chain.p; at.edits && len(p.Bias)+len(at.chain.penalty.ids)+len(p.Stages) > 0 {
		d = d.aside()
		for _, e := range at.chain.edits {
			e.Apply(d)
		}
	}
	c, ok := at.chain.outcome(d, temperature)
	return c.ID, ok
}

// outcome is what filters and draw make of an edited distribution.
func (c *Chain) outcome(d *Distribution, temperature float64) (Candidate, bool) {
	if c.greedyAt(temperature) {
		return d.best()
	}
	if d.rest.filtered {
		temperature = 1
	}
	u := uniform(c.p.Seed, d.rest.position)
	if pick, ok := c.glance(d, temperature, u); ok {
		return pick, true
	}
	d = d.aside()
	if !d.rest.filtered {
		c.filter(d, temperature)
	}
	return draw(d, u)
}

// greedyAt tells whether the best candidate comes at a temperature.
func (c *Chain) greedyAt(temperature float64) bool { return temperature == 0 || c.cutsToOne() }

// filter applies the temperature, which is not 0, and the cuts.
func (c *Chain) filter(d *Distribution, temperature float64) {
	if temperature != 1 {
		temperatureStage(temperature).Apply(d)
	}
	for _, f := range c.cuts {
		f.Apply(d)
	}
}

// aside returns a distribution that is the same and may be changed; it has working memory
// of its own, which the next call uses again. Logits are copied only where they are edited.
func (d *Distribution) aside() *Distribution {
	if d.s.other == nil {
		d.s.other = new(Scratch)
	}
	s := d.s.other
	s.Scan, s.whole = d.s.Scan, d.s.whole
	s.topped, s.shareOf, s.counted, s.scanned = 0, 0, false, false
	s.d = *d
	s.d.s, s.d.hist, s.d.ready, s.d.shared = s, &s.hist, false, true
	return &s.d
}
