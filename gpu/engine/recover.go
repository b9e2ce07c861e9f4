package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ganglion/gpu/gguf"
	"ganglion/gpu/kvcache"
	"ganglion/gpu/ops"
)

// A device can be lost, hang or run out of memory at any time. The engine then takes
// another backend (Config.Recover), loads the plan there, runs again what the slots
// hold, and goes on with the batch that failed. kvcache knows the tokens of every slot,
// and a row's result depends on its own sequence alone, so in exact mode the text is
// the very same.

// patience is how long a lost device may take to give its memory back before the plan
// is loaded elsewhere. A driver that hangs must not hold requests up any longer: they are
// to go on within five seconds, of which a device may take two to be known for hung.
const patience = time.Second

// errRows is wrapped where a sequence cannot be put together again, which no other backend
// helps against.
var errRows = errors.New("rows cannot run again")

// seat is where a model runs: a plan loaded on a backend, and what was compiled there.
type seat struct {
	backend  ops.Backend
	runtime  ops.Runtime
	programs map[ops.Shape]ops.Program
}

// close frees all that the seat holds; the backend belongs to somebody else.
func (s *seat) close() error {
	var errs []error
	for _, p := range s.programs {
		errs = append(errs, p.Close())
	}
	if s.runtime != nil {
		errs = append(errs, s.runtime.Close())
	}
	return errors.Join(errs...)
}

// take loads the plan on a backend. A file that is cut short meanwhile is an error.
func (e *Engine) take(ctx context.Context, b ops.Backend, progress func(done, total int64)) error {
	var rt ops.Runtime
	err := e.file.Guard(func() (err error) {
		rt, err = b.Load(ctx, e.plan, e.opts, progress)
		return err
	})
	if err != nil {
		return fmt.Errorf("engine: load on %s: %w", b.Name(), err)
	}
	e.seat = &seat{backend: b, runtime: rt, programs: make(map[ops.Shape]ops.Program)}
	if err := e.file.Forget(); err != nil { // what the backend packed need not stay mapped as well
		return fmt.Errorf("engine: give the mapping back: %w", err)
	}
	return nil
}

// recoverable tells whether another backend can help against a failure.
func (e *Engine) recoverable(err error) bool {
	if e.config.Recover == nil || e.lost != nil {
		return false
	}
	for _, other := range []error{ops.ErrClosed, ops.ErrStopped, ops.ErrPlan, gguf.ErrTruncated, gguf.ErrClosed, context.Canceled, context.DeadlineExceeded, errRows} {
		if errors.Is(err, other) {
			return false
		}
	}
	return e.checkFiles() == nil
}

// next asks for the backend that follows after a failure and loads the plan there, until
// one takes it. It returns the failure where none does.
func (e *Engine) next(ctx context.Context, failure error, progress func(done, total int64)) error {
	for {
		e.failures++
		b, err := e.config.Recover(failure, e.failures)
		if err != nil {
			return errors.Join(failure, err)
		}
		if b == nil {
			return failure
		}
		if err = e.forecast(b); err != nil {
			return errors.Join(failure, err)
		}
		if err = e.take(ctx, b, progress); err == nil {
			return nil
		}
		if !e.recoverable(err) {
			return errors.Join(failure, err)
		}
		failure = errors.Join(failure, err)
	}
}

// move goes on elsewhere after a failure: all that the slots hold runs again there, up
// to the rows of the batch that failed, which run next. Where nothing takes the plan
// the engine is of no use any more.
func (e *Engine) move(failure error, pending []Row) error {
	from, cause := e.place(), failure
	slots := e.cache.Sequences()
	for i := range slots {
		withhold(&slots[i], pending)
	}
	for {
		e.abandon()
		if err := e.next(context.Background(), failure, nil); err != nil {
			e.lost = fmt.Errorf("engine: %w", err)
			return e.lost
		}
		e.cache.Restart(e.seat.runtime)
		err := e.replay(slots)
		if err == nil {
			break
		}
		if !e.recoverable(err) {
			e.lost = fmt.Errorf("engine: %w", errors.Join(failure, err))
			return e.lost
		}
		failure = err
	}
	info := e.describe()
	info.Moves = e.Info().Moves + 1
	info.Moved = e.movedText(from, cause)
	e.info.Store(&info)
	return nil
}

// withhold takes the rows of the batch that failed, which run next, off a sequence.
func withhold(q *kvcache.Sequence, pending []Row) {
	n := len(q.Tokens)
	for _, r := range pending {
		if r.Slot == q.Slot {
			n--
		}
	}
	q.Truncate(n)
}

// movedText says what failed and what the model runs on now.
func (e *Engine) movedText(from string, cause error) string {
	return fmt.Sprintf("%s failed (%s); went on with %s", from, strings.ReplaceAll(cause.Error(), "\n", "; "), e.place())
}

// place is where the model runs, for people.
func (e *Engine) place() string {
	return fmt.Sprintf("%s (%s)", e.seat.backend.Name(), e.seat.backend.Caps().Device)
}

// abandon closes what is left on a backend that failed. It waits a moment only; Close
// waits for what is not closed by then.
func (e *Engine) abandon() {
	old, done := e.seat, make(chan struct{})
	e.seat = &seat{backend: old.backend}
	e.cache.Restart(nowhere{}) // the old runtime is another goroutine's from here on
	e.leaving.Go(func() {
		defer close(done)
		defer func() { _ = recover() }() // the driver's state is in doubt, and nothing is asked of it any more
		_ = old.close()
	})
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// nowhere is what the books know between two runtimes.
type nowhere struct{}

func (nowhere) CopyPage(int, int, int) error                { return ops.ErrClosed }
func (nowhere) SaveState(int, []float32) ([]float32, error) { return nil, ops.ErrClosed }
func (nowhere) LoadState(int, []float32) error              { return ops.ErrClosed }

// replay runs again what the slots held. A sequence that cannot be put together again ends:
// its slot takes no more rows until it is released, and the others go on.
func (e *Engine) replay(slots []kvcache.Sequence) error {
	for _, q := range slots {
		err := e.replayOne(&q)
		if errors.Is(err, errRows) {
			e.cache.Reset(q.Slot)
			e.cache.Spoil(q.Slot, 0)
			continue
		}
		if err != nil {
			return fmt.Errorf("engine: run slot %d again: %w", q.Slot, err)
		}
	}
	return nil
}

func (e *Engine) replayOne(q *kvcache.Sequence) error {
	n, err := e.cache.Resume(q.Slot, q.Beginning(e.opts.MaxRows))
	if err != nil {
		return err
	}
	var rows []Row
	for {
		if n == q.Mark {
			if err := e.cache.Mark(q.Slot); err != nil {
				return err
			}
		}
		if n == len(q.Tokens) {
			return nil
		}
		end := q.Cut(n, e.opts.MaxRows)
		rows = e.again(rows[:0], q.Slot, n, q.Tokens[n:end])
		end = n + len(rows)
		if err := e.fill(rows); err != nil {
			return fmt.Errorf("%w: %w", errRows, err)
		}
		if err := e.submit(); err != nil {
			return err
		}
		if n == q.Bad {
			e.cache.Spoil(q.Slot, n)
		}
		if err := e.cache.Commit(e.touched); err != nil {
			return err
		}
		n = end
	}
}

// truncateElsewhere goes on on another backend when a slot's older state could not be
// put back, which emptied the slot: what was to stay runs again.
func (e *Engine) truncateElsewhere(stay *kvcache.Sequence, failure error) (kept int, err error) {
	for {
		if err := e.move(failure, nil); err != nil {
			return 0, err
		}
		failure = e.replayOne(stay)
		if failure == nil {
			return len(stay.Tokens), nil
		}
		e.cache.Reset(stay.Slot)
		if !e.recoverable(failure) {
			return 0, failure
		}
	}
}

// leave waits for the seats that are being closed.
func (e *Engine) leave() error {
	done := make(chan struct{})
	go func() {
		e.leaving.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		return errors.New("engine: a device that failed does not close")
	}
}
