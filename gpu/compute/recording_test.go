package compute

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// cutsOf is a recorded list of dispatches that each move some bytes.
func cutsOf(t *testing.T, b *Backend, bytes ...int64) *cuts {
	t.Helper()
	c := &cuts{b: b}
	for _, n := range bytes {
		c.list = append(c.list, dispatch{shader: nothing(""), groups: [3]int{1, 1, 1}, bytes: n})
	}
	if err := c.record(); err != nil {
		t.Fatal(err)
	}
	return c
}

func sizes(c *cuts) []int {
	var n []int
	for _, p := range c.programs {
		n = append(n, p.Commands())
	}
	return n
}

// Submissions take at most the slice in predicted time, but for a lone dispatch.
func TestCutsByPredictedTime(t *testing.T) {
	const ms = firstBytes / 1000
	d := newFake()
	c := cutsOf(t, New(d, Options{}), 5*ms, 5*ms, 5*ms, 5*ms, 50*ms, 1*ms, 1*ms)
	if got, want := sizes(c), []int{3, 1, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("commands by submission: %v, want %v", got, want)
	}
	for _, p := range c.programs {
		if !p.(*fakeProgram).commands[0].Barrier {
			t.Error("a submission begins without a barrier")
		}
	}
}

// A device that turns out slower gets shorter submissions, a faster one longer ones.
func TestCutsFollowThePace(t *testing.T) {
	const ms = firstBytes / 1000
	d := newFake()
	b := New(d, Options{})
	c := cutsOf(t, b, 5*ms, 5*ms, 5*ms, 5*ms)
	d.took = 100 * time.Millisecond
	if err := b.submit(&Stats{}, c); err != nil {
		t.Fatal(err)
	}
	if err := c.record(); err != nil {
		t.Fatal(err)
	}
	if got, want := sizes(c), []int{1, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("after a slow run: %v commands, want %v", got, want)
	}
	d.took = 0
	for range 40 {
		if err := errors.Join(b.submit(&Stats{}, c), c.record()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := sizes(c), []int{4}; !slices.Equal(got, want) {
		t.Errorf("after fast runs: %v commands, want %v", got, want)
	}
	if err := c.forget(); err != nil || d.programs != 0 {
		t.Errorf("%d programs left open, %v", d.programs, err)
	}
}

// A wait has the deadline and the predicted time, and its error reaches the caller.
func TestWaitHasADeadline(t *testing.T) {
	d := newFake()
	b := New(d, Options{Deadline: time.Second})
	c := cutsOf(t, b, firstBytes/2)
	d.failWait = device.ErrTimeout
	err := translate(b.submit(&Stats{}, c))
	if !errors.Is(err, ops.ErrDeviceLost) || !errors.Is(err, device.ErrTimeout) {
		t.Errorf("a fence that is not signalled gave %v", err)
	}
	if got := d.waits[0].Round(10 * time.Millisecond); got != 1500*time.Millisecond {
		t.Errorf("waited for %v, want 1.5 s", got)
	}
}

func TestErrorsAreTranslated(t *testing.T) {
	for _, k := range []struct{ from, to error }{
		{device.ErrLost, ops.ErrDeviceLost}, {device.ErrTimeout, ops.ErrDeviceLost}, {device.ErrOutOfMemory, ops.ErrOutOfMemory},
		{device.ErrCompile, ops.ErrUnsupported}, {device.ErrLimit, ops.ErrUnsupported}, {device.ErrClosed, ops.ErrClosed},
	} {
		if err := translate(k.from); !errors.Is(err, k.to) || !errors.Is(err, k.from) {
			t.Errorf("%v became %v", k.from, err)
		}
	}
	if other := errors.New("other"); translate(other) != other || translate(nil) != nil {
		t.Error("an error without a counterpart was changed")
	}
}

// A list of which a part could not be recorded is not run in parts: nothing of it stays,
// and it is recorded whole when it is asked for again.
func TestRecordingsAreWholeOrNot(t *testing.T) {
	for n := 1; ; n++ {
		d := newFake()
		b := New(d, Options{Slice: 1})
		rt, err := b.Load(context.Background(), pass(8), passOptions(2), nil)
		if err != nil {
			t.Fatal(err)
		}
		left := n
		d.failProgram = func() error {
			if left--; left == 0 {
				return device.ErrOutOfMemory
			}
			return nil
		}
		_, err = rt.Compile(ops.Shape{Rows: 2, Outs: 1})
		if err == nil {
			if n < 4 {
				t.Errorf("%d programs: the test tests nothing", n-1)
			}
			return
		}
		if !errors.Is(err, ops.ErrOutOfMemory) || d.programs != 0 {
			t.Errorf("failure of program %d: %d programs left open, %v", n, d.programs, err)
		}
		prog, err := rt.Compile(ops.Shape{Rows: 2, Outs: 1})
		if err != nil {
			t.Fatal(err)
		}
		list := prog.(*Program).lists[1]
		for _, c := range []*cuts{&list.main, &list.top} {
			if len(c.programs) != len(c.list) {
				t.Errorf("failure of program %d: %d dispatches in %d programs of one", n, len(c.list), len(c.programs))
			}
			left = 1
			if err := errors.Join(c.forget(), c.record()); err == nil || len(c.programs) != 0 {
				t.Errorf("failure of a recording: %d programs, %v", len(c.programs), err)
			}
			if err := c.record(); err != nil || len(c.programs) != len(c.list) {
				t.Errorf("a recording that failed is made again: %d programs of %d, %v", len(c.programs), len(c.list), err)
			}
		}
		if err := errors.Join(rt.Close(), b.Close()); err != nil || d.programs != 0 {
			t.Errorf("%d programs left open, %v", d.programs, err)
		}
	}
}
