package appliance

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ganglion/appliance/draft"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/plugins/sampling"
)

// maxWanted bounds the rows of one batch that want a head: each may be read back as
// a row of logits, a mebibyte for a vocabulary of 262,144.
const maxWanted = 64

// errRetired says that a scheduler takes no more requests, for its model was
// replaced.
var errRetired = errors.New("appliance: scheduler: retired")

// scheduler runs all requests of one model. One goroutine, run, drives the model:
// each step is one batch with a row of every sequence that decodes and a share of
// each prompt that is still being read. What a sequence yields never depends on
// its company.
type scheduler struct {
	cfg   *Config
	model Model
	info  engine.Info // what never changes of it
	vocab Vocabulary
	wake  chan struct{} // holds one signal when there is something to look at
	done  chan struct{} // closed when the model is closed and the goroutine over

	mu      sync.Mutex
	places  int // requests between reserve and their end
	active  int // of these, those with a slot
	waiting []*sequence
	retired bool          // no more requests; the goroutine ends with the last one
	abandon bool          // all requests are cancelled
	mean    time.Duration // running mean of a request's time in a slot

	// Owned by run.
	running []*sequence
	moves   int // of the model so far
	turn    int // where the decoding sequences' turn begins
	rows    []engine.Row
	batch   []*sequence // sequences with rows in the batch, in row order
	pace    pace
	spec    speculator
	scratch sampling.Scratch
	timer   *time.Timer // see await

	workers   sync.WaitGroup // goroutines of sequences with plugins
	scratches sync.Pool      // their sampling.Scratch
}

func newScheduler(cfg *Config, m Model) *scheduler {
	s := &scheduler{
		cfg: cfg, model: m, info: m.Info(), vocab: m.Vocabulary(),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.moves = s.info.Moves
	s.scratches.New = func() any { return new(sampling.Scratch) }
	s.rows = make([]engine.Row, 0, s.info.MaxRows)
	if d, ok := m.(Drafted); ok {
		s.spec.model = draft.NewModel(d.Draft(), s.unguessable, cfg.Now)
	}
	return s
}

// signal makes run look at arrivals and cancellations.
func (s *scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// reserve takes a place for a request, which submit uses or cancel gives back.
func (s *scheduler) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired {
		return errRetired
	}
	if s.places >= s.cfg.QueueMax+s.info.Slots {
		err := Errorf(CodeQueueFull, "", "%d requests are waiting already; try again later", s.places-s.active)
		err.RetryAfter = s.retryAfter()
		return err
	}
	s.places++
	return nil
}

// retryAfter estimates when a place is free: a slot becomes free once in the mean
// time of a request divided by the number of slots.
func (s *scheduler) retryAfter() time.Duration {
	d := s.mean / time.Duration(max(s.info.Slots, 1))
	return min(max(d.Round(time.Second), time.Second), time.Minute)
}

// submit hands a sequence over; it has a place.
func (s *scheduler) submit(q *sequence) {
	s.mu.Lock()
	s.waiting = append(s.waiting, q)
	s.mu.Unlock()
	s.signal()
}

// retire lets the goroutine end once its last request is over.
func (s *scheduler) retire() {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.signal()
}

// load returns how many requests have a slot and how many wait.
func (s *scheduler) load() (running, queued int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active, s.places - s.active
}

// run is the scheduler's goroutine.
func (s *scheduler) run() {
	defer close(s.done)
	for s.collect() {
		s.step()
	}
	s.workers.Wait()
	if err := s.model.Close(); err != nil {
		s.cfg.Logger.Error("model did not close cleanly", "model", s.info.Name, "error", err)
	}
}

// collect ends cancelled requests and gives free slots to waiting ones. It waits
// until there is a sequence to run, and returns false when there will be none.
func (s *scheduler) collect() bool {
	for {
		for _, q := range s.running {
			if q.busy() {
				s.reap(q)
			}
		}
		s.dropCancelled()
		for s.admit() {
		}
		for _, q := range s.running {
			if !q.busy() {
				return true
			}
		}
		s.mu.Lock()
		over := s.retired && s.places == 0
		s.mu.Unlock()
		if over {
			return false
		}
		<-s.wake
	}
}

// dropCancelled ends the requests that were cancelled.
func (s *scheduler) dropCancelled() {
	var dropped []*sequence
	s.mu.Lock()
	abandon := s.abandon
	keep := s.waiting[:0]
	for _, q := range s.waiting {
		if abandon || q.c.cancelled.Load() {
			dropped = append(dropped, q)
		} else {
			keep = append(keep, q)
		}
	}
	clear(s.waiting[len(keep):])
	s.waiting = keep
	s.mu.Unlock()
	for _, q := range dropped {
		q.err = errCancelled
		s.leave(q, false)
	}
	for _, q := range s.running {
		if (abandon || q.c.cancelled.Load()) && !q.busy() {
			q.err = errCancelled
		}
	}
	s.sweep()
}

// admit gives a slot to the request that waits longest, if there is one and a slot.
func (s *scheduler) admit() bool {
	s.mu.Lock()
	if len(s.waiting) == 0 || s.active >= s.info.Slots {
		s.mu.Unlock()
		return false
	}
	q := s.waiting[0]
	s.mu.Unlock()

	ok := false
	err := guard("acquire a slot", func() error {
		q.slot, q.cached, ok = s.model.Acquire(q.prompt, engine.Salt(q.lora))
		if ok && (q.cached < 0 || q.cached >= len(q.prompt)) {
			s.model.Release(q.slot)
			return fmt.Errorf("appliance: scheduler: %d of %d prompt tokens are said to be cached", q.cached, len(q.prompt))
		}
		if ok && len(q.lora) > 0 {
			if err := s.model.SetAdapters(q.slot, q.lora); err != nil {
				s.model.Release(q.slot)
				return err
			}
		}
		return nil
	})
	if err == nil && !ok {
		if len(s.running) > 0 {
			return false
		}
		err = fmt.Errorf("appliance: scheduler: no slot is free though none is in use")
	}
	s.mu.Lock()
	s.waiting = slices.Delete(s.waiting, 0, 1)
	if err == nil {
		s.active++
	}
	s.mu.Unlock()
	if err != nil {
		q.err = err
		s.leave(q, false)
		return true
	}
	q.fed, q.started, q.moves = q.cached, s.cfg.Now(), s.moves
	s.running = append(s.running, q)
	if q.plug != nil {
		s.startWork(q)
	}
	return true
}

// step forms one batch, runs it and deals its heads out.
func (s *scheduler) step() {
	prompts := s.form()
	if len(s.rows) == 0 {
		return
	}
	from := s.cfg.Now()
	heads, err := s.runBatch()
	s.noteMoves()
	took := s.cfg.Now().Sub(from)
	s.pace.saw(prompts, took)
	if prompts == 0 {
		s.spec.price.Saw(len(s.rows), took)
	}
	if err == nil {
		err = s.deal(heads)
	}
	if err != nil {
		for _, q := range s.batch {
			q.err = err
		}
	}
	s.sweep()
}

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
		if !q.busy() && q.prefilling() {
			reading++
			missing += len(q.tokens) - q.fed
		}
	}
	limit := min(s.info.MaxRows, maxWanted)
	if reading > 0 {
		limit = max(min(limit, s.info.MaxRows-1), 1) // prompts go on too
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
	for _, q := range s.running {
		if q.take == 0 {
			continue
		}
		if last := q.fed+q.take == len(q.tokens); last {
			if wanted == maxWanted {
				q.take-- // the last row waits for a batch with room for its head
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

// decoding puts the sequences that decode into the batch, at most limit, and returns
// how many there are.
func (s *scheduler) decoding(limit int) (n int) {
	next := 0
	for i := range s.running {
		at := (s.turn + i) % len(s.running)
		if q := s.running[at]; !q.busy() && !q.prefilling() && n < limit {
			s.batch = append(s.batch, q)
			n++
			next = at + 1
		}
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
			q.take = min(len(q.tokens)-q.fed, equal)
			budget -= q.take
		}
	}
	for _, q := range s.running {
		if !q.busy() && q.prefilling() {
			more := min(len(q.tokens)-q.fed-q.take, budget)
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
			q.plug.hand(heads[:n])
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

// sweep takes sequences that are over out of their slots and ends them.
func (s *scheduler) sweep() {
	over := false
	for _, q := range s.running {
		over = over || !q.busy() && q.over()
	}
	if !over {
		return
	}
	keep := s.running[:0]
	for _, q := range s.running {
		if q.busy() || !q.over() {
			keep = append(keep, q)
			continue
		}
		if err := guard("release a slot", func() error { s.model.Release(q.slot); return nil }); err != nil {
			s.cfg.Logger.Error("slot was not released", "slot", q.slot, "error", err)
		}
		s.forget(q)
		if q.plug != nil {
			q.plug.jobs <- endPlugged // which leaves
			continue
		}
		s.leave(q, true)
	}
	clear(s.running[len(keep):])
	s.running = keep
}

// leave ends a sequence and gives its place back.
func (s *scheduler) leave(q *sequence, hadSlot bool) {
	s.mu.Lock()
	s.places--
	if hadSlot {
		s.active--
		took := s.cfg.Now().Sub(q.started)
		if s.mean == 0 {
			s.mean = took
		}
		s.mean += (took - s.mean) / 8
	}
	s.mu.Unlock()
	s.close(q)
}

// guard turns a panic into an error, so that a fault in one place does not end the
// service.
func guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("appliance: %s: panic: %v", what, p)
		}
	}()
	return f()
}

// shown turns an error into one for the user; what is internal is logged.
func (s *scheduler) shown(q *sequence) *Error {
	var e *Error
	switch {
	case errors.As(q.err, &e):
		return e
	case errors.Is(q.err, ops.ErrOutOfMemory):
		return Errorf(CodeOutOfMemory, "", "the device has too little memory for this request")
	}
	s.cfg.Logger.Error("completion failed", "request_id", q.c.id, "model", s.info.Name,
		"backend", s.model.Info().Backend, "slot", q.slot, "tokens", len(q.flow.tokens), "error", q.err)
	return Errorf(CodeInternal, "", "internal error")
}

// cancelAll cancels every request that is running or waiting.
func (s *scheduler) cancelAll() {
	s.mu.Lock()
	s.abandon = true
	s.mu.Unlock()
	s.signal()
}
