package encoder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
)

// patience is how long a device that failed may take to give its memory back.
const patience = time.Second

// recoverable tells whether another backend can help against a failure.
func (e *Encoder) recoverable(err error) bool {
	if err == nil || e.config.Recover == nil {
		return false
	}
	for _, other := range []error{ops.ErrClosed, ops.ErrPlan, gguf.ErrTruncated, gguf.ErrClosed, context.Canceled, context.DeadlineExceeded, errJob} {
		if errors.Is(err, other) {
			return false
		}
	}
	return e.file.Check() == nil
}

// move loads the towers on the backends that follow after a failure, until one takes them.
// Where none does the encoder is of no use any more.
func (e *Encoder) move(ctx context.Context, failure error) error {
	ctx = context.WithoutCancel(ctx) // the towers are not this request's alone
	for e.recoverable(failure) {
		e.failures++
		b, err := e.config.Recover(failure, e.failures)
		if err != nil || b == nil {
			failure = errors.Join(failure, err)
			break
		}
		plans := e.plans
		e.abandon()
		if err = e.file.Guard(func() error { return e.seat(ctx, b, plans) }); err == nil {
			return nil
		}
		failure = errors.Join(failure, fmt.Errorf("encoder: load on %s: %w", b.Name(), err))
	}
	if e.picture == nil && e.sound == nil {
		e.lost = failure
	}
	return failure
}

// abandon closes the towers on a backend that failed. It waits a moment only.
func (e *Encoder) abandon() {
	old, done := [2]*tower{e.picture, e.sound}, make(chan struct{})
	e.picture, e.sound = nil, nil
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // the driver's state is in doubt, and nothing is asked of it any more
		for _, t := range old {
			_ = t.close()
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// seat loads the towers on a backend.
func (e *Encoder) seat(ctx context.Context, b ops.Backend, plans [2]*ops.Plan) (err error) {
	if plans[0] != nil {
		if e.picture, err = load(ctx, b, plans[0], e.see.maxRows(), e.config); err != nil {
			return err
		}
	}
	if plans[1] != nil {
		if e.sound, err = load(ctx, b, plans[1], e.hear.maxRows(), e.config); err != nil {
			return err
		}
	}
	e.place.Store(&[2]string{b.Name(), b.Caps().Device})
	return nil
}
