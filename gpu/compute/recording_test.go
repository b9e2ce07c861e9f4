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
	b := onClockOf(d, New(d, Options{}))
	c := cutsOf(t, b, 5*ms, 5*ms, 5*ms, 5*ms)
	d.took = 100 * time.Millisecond
	for run, want := range [][]int{{3, 1}, {1, 1, 1, 1}} { // in the first run drivers compile
		if err := errors.Join(b.submit(&Stats{}, nil, c), c.record()); err != nil {
			t.Fatal(err)
		}
		if got := sizes(c); !slices.Equal(got, want) {
			t.Errorf("after slow run %d: %v commands, want %v", run+1, got, want)
		}
	}
	d.took = 0
	for range 40 {
		if err := errors.Join(b.submit(&Stats{}, nil, c), c.record()); err != nil {
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

// A submission has its predicted time and the deadline to end in, from the end of the one
// before it on: however much there is in a batch, a device that hangs is known for it after
// that. The first run of a list has a quarter more, and after a fence that is late no
// other is waited for.
func TestWaitHasADeadline(t *testing.T) {
	d := newFake()
	b := New(d, Options{Deadline: time.Second})
	c := cutsOf(t, b, firstBytes/2, firstBytes/4, firstBytes/4)
	for run, want := range []time.Duration{1250 * time.Millisecond, time.Second} {
		d.waits = nil
		if err := b.submit(&Stats{}, nil, c); err != nil {
			t.Fatal(err)
		}
		for i, predicted := range []time.Duration{500 * time.Millisecond, 250 * time.Millisecond, 250 * time.Millisecond} {
			if got := d.waits[i].Round(10 * time.Millisecond); len(d.waits) != 3 || got != predicted+want {
				t.Errorf("run %d, submission %d of %d: waited for %v, want %v", run+1, i+1, len(d.waits), got, predicted+want)
			}
		}
	}
	for failure, want := range map[error]int{device.ErrTimeout: 1, device.ErrLost: 3} { // what is lost has ended
		d.waits, d.failWait = nil, failure
		if err := translate(b.submit(&Stats{}, nil, c)); !errors.Is(err, ops.ErrDeviceLost) || !errors.Is(err, failure) {
			t.Errorf("%v became %v", failure, err)
		}
		if len(d.waits) != want {
			t.Errorf("%v: %d submissions were waited for, want %d", failure, len(d.waits), want)
		}
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
		list := prog.(*Program).lists[listKey{chunks: 1}]
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

// Of a run that may be stopped two submissions are under way at most, and none follows once it
// was stopped; a run that may not be stopped submits all at once.
func TestSubmissionsStop(t *testing.T) {
	const ms = firstBytes / 1000
	for _, tt := range []struct {
		name         string
		after        int // submissions, -1: never
		stoppable    bool
		submits, out int
	}{
		{"at once", 0, true, 0, 0}, {"in the middle", 3, true, 3, inFlight}, {"not", -1, true, 8, inFlight}, {"cannot", -1, false, 8, 8},
	} {
		d := newFake()
		b := New(d, Options{})
		c := cutsOf(t, b, slices.Repeat([]int64{20 * ms}, 8)...)
		var stop *ops.Stop
		if tt.stoppable {
			stop = new(ops.Stop)
		}
		most := 0
		d.onSubmit = func() {
			most = max(most, len(d.submits)-len(d.waits))
			if len(d.submits) == tt.after {
				stop.Set()
			}
		}
		if tt.after == 0 {
			stop.Set()
		}
		err := b.submit(&Stats{}, stop, c)
		if wantErr := tt.after >= 0; errors.Is(err, ops.ErrStopped) != wantErr || !wantErr && err != nil {
			t.Errorf("stopped %s: %v", tt.name, err)
		}
		if len(d.submits) != tt.submits || len(d.waits) != tt.submits || most != tt.out {
			t.Errorf("stopped %s: %d submissions, %d waited for, %d at once; want %d, %d at once", tt.name, len(d.submits), len(d.waits), most, tt.submits, tt.out)
		}
	}
}
