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
	eyes  *eyes         // nil: the model takes text only
	quit  chan struct{} // closed when all requests are cancelled

	mu       sync.Mutex
	places   int // requests between reserve and their end
	active   int // of these, those with a slot
	held     int // slots of auxiliary sequences, taken or claimed
	waiting  []*sequence
	retired  bool // no more requests; the goroutine ends with the last one
	abandon  bool // all requests are cancelled
	forsaken forsaken
	mean     time.Duration // running mean of a request's time in a slot

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
		wake: make(chan struct{}, 1), done: make(chan struct{}), quit: make(chan struct{}),
	}
	s.moves = s.info.Moves
	s.scratch.Scan = cfg.Scan
	s.scratches.New = func() any { return &sampling.Scratch{Scan: cfg.Scan} }
	s.rows = make([]engine.Row, 0, s.info.MaxRows)
	if d, ok := m.(Drafted); ok {
		s.spec.model = draft.NewModel(d.Draft(), s.unguessable, cfg.Now)
	}
	if e, ok := m.(Seeing); ok {
		s.eyes = newEyes(e.Encoder(), cfg.MediaCacheBytes)
		if r, ok := m.(Rebuilding); ok {
			r.Rebuild(s.rowOf)
		}
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

// reserve takes a place for a request, which submit uses or giveBack gives back.
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

// giveBack gives a place back that no sequence used.
func (s *scheduler) giveBack() {
	s.mu.Lock()
	s.places--
	s.mu.Unlock()
	s.signal()
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
	if len(s.waiting) == 0 || s.active+s.held >= s.info.Slots {
		s.mu.Unlock()
		return false
	}
	q := s.waiting[0]
	if s.abandon || q.c.cancelled.Load() { // since dropCancelled looked
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.mu.Unlock()
		q.err = errCancelled
		s.leave(q, false)
		return true
	}
	s.mu.Unlock()

	ok := false
	err := guard("acquire a slot", func() (err error) {
		ok, err = s.acquire(q)
		return err
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
	if prompts > 0 {
		s.stoppable()
		defer s.ran()
	}
	from := s.cfg.Now()
	heads, err := s.runBatch()
	s.noteMoves()
	took := s.cfg.Now().Sub(from)
	if errors.Is(err, ops.ErrStopped) { // all its requests were cancelled
		err = errCancelled
	} else {
		s.pace.saw(prompts, took)
	}
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
		s.releaseSlots(q)
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
	if q.plug != nil {
		s.held -= q.plug.claims
		q.plug.claims = 0
	}
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

// errPanic is in the errors that guard makes of panics.
var errPanic = errors.New("panic")

// guard turns a panic into an error, so that a fault in one place does not end the
// service.
func guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("appliance: %s: %w: %v", what, errPanic, p)
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
	if !s.abandon {
		close(s.quit)
	}
	s.abandon = true
	s.mu.Unlock()
	s.stopForsaken()
	s.signal()
}
