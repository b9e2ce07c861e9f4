package appliance

import "ganglion/appliance/draft"

// Speculation says where guesses of the next tokens come from. It never changes a
// text: see package draft.
type Speculation string

// The sources of guesses.
const (
	SpeculateOff    Speculation = "off"
	SpeculateLookup Speculation = "lookup" // the text itself
	SpeculateDraft  Speculation = "draft"  // a smaller model
)

// DefaultDraftMax is how many tokens are guessed at most where nothing else is said.
const DefaultDraftMax = 16

// mode is the source of guesses for a request: its own choice or the configuration's.
func (s *scheduler) mode(r *Request) (m Speculation, from Origin, fault *Error) {
	m, from = s.cfg.Speculate, FromConfig
	switch {
	case r.Speculate != "":
		m, from = r.Speculate, FromRequest
	case m == SpeculateLookup:
		from = FromDefault
	}
	switch {
	case !m.known():
		return "", "", Errorf(CodeInvalid, "speculate", "speculate is %s; it must be \"off\", \"lookup\" or \"draft\"", quote(string(m)))
	case m == SpeculateDraft && s.spec.model == nil && from == FromRequest:
		return "", "", Errorf(CodeInvalid, "speculate", "speculate is \"draft\", and no draft model is loaded")
	case m == SpeculateDraft && s.spec.model == nil:
		m = SpeculateOff
	}
	return m, from, nil
}

// known tells whether m is one of the sources.
func (m Speculation) known() bool {
	return m == SpeculateOff || m == SpeculateLookup || m == SpeculateDraft
}

// speculator decides which guesses a scheduler runs beside the next tokens of its
// sequences.
type speculator struct {
	model *draft.Model // nil: there is no smaller model
	price draft.Price
	plan  draft.Plan
	bids  []draft.Bid
	asks  []draft.Ask
}

// ahead is what one sequence guesses with. Its parts are made when the sequence first
// decodes.
type ahead struct {
	mode   Speculation
	limit  int // guesses of one step
	lookup *draft.Lookup
	reader *draft.Reader

	guesses []draft.Guess
	run     []int32 // the guesses in the batch, as tokens behind the sequence's last
	forced  int     // so many of them first are no guesses: plugins force them
	drafted int     // guesses that were run
	came    int     // of these, those that became text
}

// speculate sets what each decoding sequence runs beside its next token: at most room
// guesses in all, in a step with so many prompt rows.
func (s *scheduler) speculate(decoding []*sequence, prompts, room int) {
	p := &s.spec
	asked := false
	for _, q := range decoding {
		q.ahead.run, q.ahead.guesses, q.ahead.forced = q.ahead.run[:0], q.ahead.guesses[:0], 0
		room -= s.forced(q, room)
		asked = asked || q.ahead.mode == SpeculateDraft
	}
	extra := s.pace.perRow.Seconds() * float64(prompts)
	if asked {
		extra += s.ask(decoding)
	}
	p.bids = p.bids[:0]
	guesses := 0
	for _, q := range decoding {
		s.lookUp(q)
		guesses += len(q.ahead.guesses)
		p.bids = append(p.bids, draft.Bid{Guesses: q.ahead.guesses})
	}
	if guesses == 0 {
		return
	}
	p.plan.Choose(p.bids, len(decoding), extra, room, &p.price)
	for i, q := range decoding {
		for _, g := range p.bids[i].Guesses[:p.bids[i].Take] {
			q.ahead.run = append(q.ahead.run, g.ID)
		}
		if p.bids[i].Take == 0 {
			continue
		}
		if err := s.mark(q); err != nil {
			q.ahead.run = q.ahead.run[:0]
			s.quiet(q, err)
		}
	}
}

// lookUp fills the guesses of a sequence from its own text, if that is its source.
func (s *scheduler) lookUp(q *sequence) {
	a := &q.ahead
	if a.mode != SpeculateLookup || len(a.run) > 0 {
		return
	}
	if a.lookup == nil {
		a.lookup = draft.NewLookup(len(q.tokens) + min(q.max, DefaultMaxTokens))
	}
	a.lookup.Follow(q.tokens)
	a.guesses = a.lookup.Guess(a.guesses, q.tokens, q.guessable())
	for i, g := range a.guesses {
		if s.unguessable(g.ID) {
			a.guesses = a.guesses[:i]
			break
		}
	}
}

// ask lets the smaller model guess for the sequences that want it to, and returns the
// seconds this took. Without its guesses the texts go on as they are.
func (s *scheduler) ask(decoding []*sequence) (seconds float64) {
	p := &s.spec
	p.asks = p.asks[:0]
	for _, q := range decoding {
		if q.ahead.mode != SpeculateDraft || len(q.ahead.run) > 0 {
			continue
		}
		if q.ahead.reader == nil {
			r, err := p.model.NewReader(q.sampling)
			if err != nil {
				s.quiet(q, err)
				continue
			}
			q.ahead.reader = r
		}
		p.asks = append(p.asks, draft.Ask{Reader: q.ahead.reader, Text: q.tokens, Limit: q.guessable()})
	}
	took, err := p.model.Guess(p.asks, len(decoding), &p.price)
	for _, q := range decoding {
		switch a := &q.ahead; {
		case a.reader == nil || len(a.run) > 0:
		case err != nil:
			s.quiet(q, err)
		default:
			a.guesses = append(a.guesses, a.reader.Guesses()...)
		}
	}
	return took.Seconds()
}

// unguessable tells whether a token is not worth guessing: nothing follows one that
// ends the text, and one that the model does not have, or that is a row of a picture,
// never comes.
func (s *scheduler) unguessable(id int32) bool {
	return id < 0 || s.vocab.IsEOG(id) || int(id) >= s.info.Vocab
}

// guessable returns how many guesses can still be of use: the last token of a text is
// made by the row before it.
func (q *sequence) guessable() int {
	return max(min(q.ahead.limit, q.max-len(q.flow.tokens)-1), 0)
}

// quiet ends guessing for a sequence; a fault there is no fault of the answer.
func (s *scheduler) quiet(q *sequence, err error) {
	q.ahead.mode = SpeculateOff
	s.cfg.Logger.Warn("no tokens are guessed ahead for this request any more", "request_id", q.c.id, "model", s.info.Name, "error", err)
}

// mark prepares a slot for guesses that may have to be taken back.
func (s *scheduler) mark(q *sequence) error {
	return guard("mark a slot", func() error {
		if q.plug != nil {
			for _, a := range q.plug.aux {
				if a.gone {
					continue
				}
				if err := s.model.Mark(a.slot); err != nil {
					return err
				}
			}
		}
		return s.model.Mark(q.slot)
	})
}

// takeBack takes the last rows of a sequence back, whose guesses did not come or whose
// heads were not needed: the slot then holds what it would without guesses.
func (s *scheduler) takeBack(q *sequence, rows int) error {
	return guard("take guesses back", func() (err error) {
		q.fed, err = s.model.Truncate(q.slot, q.fed-rows)
		return err
	})
}

// forget gives back what a sequence guessed with.
func (s *scheduler) forget(q *sequence) {
	if r := q.ahead.reader; r != nil {
		if err := guard("release a slot of the smaller model", func() error { s.spec.model.Close(r); return nil }); err != nil {
			s.cfg.Logger.Error("slot of the smaller model was not released", "error", err)
		}
	}
}
