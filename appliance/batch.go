package appliance

import (
	"fmt"

	"ganglion/gpu/engine"
)

// noteMoves reports that the model's device has failed and its sequences go on elsewhere.
func (s *scheduler) noteMoves() {
	info := s.model.Info()
	if info.Moves == s.moves {
		return
	}
	s.moves = info.Moves
	s.cfg.Logger.Warn("a device failed", "model", info.Name, "backend", info.Backend, "error", info.Moved)
}

// runBatch runs the rows; a panic in the model becomes an error. It is no guard
// with a function, for that would allocate at each step.
func (s *scheduler) runBatch() (heads []engine.Head, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("appliance: scheduler: run a batch: panic: %v", p)
		}
	}()
	return s.model.Run(s.rows)
}

// form fills rows and batch: first a row of each sequence that decodes, in turns
// where they are more than fit, with guesses behind them; then shares of the prompts.
// It returns the number of prompt rows.
func (s *scheduler) form() (prompts int) {
	s.rows, s.batch = s.rows[:0], s.batch[:0]
	reading, missing := 0, 0
	for _, q := range s.running {
		if q.busy() {
			continue
		}
		if q.plug != nil {
			s.dropLeft(q)
		}
		if n := q.missing(); n > 0 {
			reading++
			missing += n
		}
	}
	limit := min(s.info.MaxRows, maxWanted)
	if reading > 0 {
		limit = max(min(limit, s.info.MaxRows-1), 1) // prompts go on too
	}
	if q := s.squeezed(); q != nil {
		limit = min(limit, s.info.MaxRows-q.fit(0, s.info.MaxRows)) // a picture waits that did not fit
	}
	wanted := s.decoding(limit)
	prompts = min(s.pace.rows(wanted > 0), s.info.MaxRows-wanted, missing)
	s.speculate(s.batch, prompts, min(maxWanted-wanted-reading, s.info.MaxRows-wanted-prompts))
	for _, q := range s.batch {
		s.rows = q.appendRows(s.rows, 1)
		wanted += len(q.ahead.run)
	}
	if reading == 0 {
		return 0
	}
	before := len(s.rows)
	s.share(prompts, reading)
	s.fit(s.info.MaxRows - before)
	for _, q := range s.running {
		if q.take == 0 {
			continue
		}
		if last := q.fed+q.take == len(q.tokens) && q.width() == 1; last {
			if wanted == maxWanted {
				q.take = q.fit(q.take-1, 0) // the last row waits for a batch with room for its head
			} else {
				wanted++
			}
		}
		if q.take > 0 {
			s.rows = q.appendRows(s.rows, q.take)
			s.batch = append(s.batch, q)
			q.take = 0
		}
	}
	return len(s.rows) - before
}

// decoding puts the sequences that decode into the batch, with at most limit rows, and
// returns how many rows their next tokens take.
func (s *scheduler) decoding(limit int) (n int) {
	next := 0
	for i := range s.running {
		at := (s.turn + i) % len(s.running)
		q := s.running[at]
		if q.busy() || q.prefilling() {
			continue
		}
		width := q.width()
		if n+width > limit {
			break // it is the first one next time
		}
		s.batch = append(s.batch, q)
		n += width
		next = at + 1
	}
	s.turn = next
	return n
}

// share deals prompt rows out: an equal share each, so that a short prompt need not
// wait for a long one, and what is left to those that came first.
func (s *scheduler) share(budget, reading int) {
	equal := budget / reading
	for _, q := range s.running {
		if !q.busy() && q.prefilling() {
			q.take = min(q.missing(), equal)
			budget -= q.take
		}
	}
	for _, q := range s.running {
		if !q.busy() && q.prefilling() {
			more := min(q.missing()-q.take, budget)
			q.take += more
			budget -= more
		}
	}
}

// deal gives each sequence that wanted heads its own.
func (s *scheduler) deal(heads []engine.Head) error {
	wanted := 0
	for _, q := range s.batch {
		wanted += q.heads
	}
	if len(heads) != wanted {
		return fmt.Errorf("appliance: scheduler: the model gave %d heads for %d rows that want one", len(heads), wanted)
	}
	for _, q := range s.batch {
		n := q.heads
		if n == 0 {
			continue
		}
		if q.plug != nil {
			q.plug.hand(s.handAuxiliary(q, heads[:n]))
			heads = heads[n:]
			continue
		}
		used := q.read(heads[:n], s.vocab, s.cfg.Now, &s.scratch)
		heads = heads[n:]
		if used == n {
			continue
		}
		if err := s.takeBack(q, n-used); err != nil && q.err == nil {
			q.err = err
		}
	}
	s.await()
	return nil
}
