//go:build cgo && (linux || windows)

package gl

// #include "gl.h"
import "C"

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"ganglion/gpu/device"
)

// slice bounds one wait in the driver, so that resets are noticed and a hang ends in a
// timeout; grace is how much longer the caller waits for the thread itself, which may
// hang inside the driver.
const (
	slice = 50 * time.Millisecond
	grace = 20 * time.Millisecond
)

// fence is one submission. The thread owns sync and sent; the rest is the caller's.
type fence struct {
	p      *program
	sync   C.GLsync
	sent   error // what the driver said to the commands
	answer chan error
	asked  bool // an answer is to come
	ended  bool
	err    error
	times  []time.Duration
}

// run replays the commands.
func (f *fence) run(g *C.struct_ggl) {
	var code C.GLenum
	result := C.ggl_submit(g, f.p.s, &f.sync, &code)
	f.sent = f.p.c.check(g, "submit", result, code)
}

// Submit sends a program to the thread, which replays it after all that was sent before.
// What the driver says to it is told by Wait.
func (c *context) Submit(dp device.Program) (device.Fence, error) {
	if err := c.usable("submit"); err != nil {
		return nil, err
	}
	p, ok := dp.(*program)
	if !ok || p.c != c {
		return nil, fmt.Errorf("gl: submit: the program is not one of this device")
	}
	if err := p.open(); err != nil {
		return nil, fmt.Errorf("gl: submit: %w", err)
	}
	if p.flying != nil {
		return nil, fmt.Errorf("gl: submit: the program's last submission has not been waited for")
	}
	f := &fence{p: p, answer: make(chan error, 1)}
	p.flying = f
	select {
	case c.jobs <- f:
		return f, nil
	default:
	}
	wait := patience
	if c.Info().Software {
		wait = softwarePatience
	}
	select {
	case c.jobs <- f:
		return f, nil
	case <-time.After(wait): // the thread has hung over what was sent before
		p.flying = nil
		return nil, c.late("submit")
	}
}

// waiting is the job that answers a fence.
type waiting struct {
	f     *fence
	until time.Time
}

func (w waiting) run(g *C.struct_ggl) { w.f.answer <- w.f.await(g, w.until) }

// await sleeps until the commands have ended.
func (f *fence) await(g *C.struct_ggl, until time.Time) error {
	if f.sync == nil {
		return f.sent
	}
	c := f.p.c
	for {
		var code C.GLenum
		left := max(0, min(time.Until(until), slice))
		result := C.ggl_wait(g, f.sync, C.uint64_t(left), &code)
		if result == C.GGL_TIMEOUT && C.ggl_reset_status(g) == 0 && time.Until(until) > 0 {
			continue
		}
		if result == C.GGL_TIMEOUT && C.ggl_reset_status(g) == 0 {
			return failure("wait", result, code)
		}
		if result == C.GGL_TIMEOUT || C.ggl_reset_status(g) != 0 {
			result = C.GGL_LOST
		}
		err := c.check(g, "wait", result, code)
		C.ggl_fence_delete(g, f.sync)
		f.sync = nil
		if err == nil {
			err = f.sent
		}
		if err == nil && f.p.timed {
			f.times = f.p.read(g)
		}
		return err
	}
}

// read gives the durations of the commands, nil where the driver calls them void.
func (p *program) read(g *C.struct_ggl) []time.Duration {
	if p.s.timing == C.GGL_QUERIES {
		C.ggl_times(g, p.s.n, p.s.queries, p.s.nanos)
		if p.c.disjoint && C.ggl_integer(g, gpuDisjoint) != 0 {
			return nil
		}
	}
	times := make([]time.Duration, p.n)
	for i, n := range unsafe.Slice(p.s.nanos, p.n) {
		times[i] = time.Duration(n)
	}
	return times
}

// Wait sleeps until the submission has ended.
func (f *fence) Wait(timeout time.Duration) error {
	if f.ended {
		return f.err
	}
	c := f.p.c
	if c.closed || f.p.closed {
		return fmt.Errorf("gl: wait: %w", device.ErrClosed)
	}
	until := time.Now().Add(timeout)
	timer := time.NewTimer(timeout + grace)
	defer timer.Stop()
	for {
		if !f.asked {
			select {
			case c.jobs <- waiting{f, until}:
				f.asked = true
			case <-timer.C:
				return c.late("wait")
			}
		}
		select {
		case err := <-f.answer:
			f.asked = false
			if isTimeout(err) {
				if time.Until(until) > 0 {
					continue // the answer to an earlier Wait
				}
				return c.late("wait")
			}
			f.finish(err)
			return err
		case <-timer.C:
			return c.late("wait")
		}
	}
}

// finish notes the fate of the submission.
func (f *fence) finish(err error) {
	f.ended, f.err, f.p.flying = true, err, nil
	if err == nil && isTimeout(f.p.c.Health()) {
		f.p.c.fate.Store(nil) // late, but alive
	}
}

// late marks the device as one that does not answer.
func (c *context) late(place string) error {
	err := fmt.Errorf("gl: %s: %w", place, device.ErrTimeout)
	c.fate.CompareAndSwap(nil, &err)
	return err
}

func isTimeout(err error) bool { return errors.Is(err, device.ErrTimeout) }

// Times are the durations of a timed program's commands.
func (f *fence) Times() []time.Duration { return f.times }
