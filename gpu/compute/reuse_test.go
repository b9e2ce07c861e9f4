package compute

import (
	"context"
	"os"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/device"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// asked counts what a device is asked for, and has a clock on which a submission takes
// what its dispatches make.
type asked struct {
	*fakeDevice
	programs, kernels, buffers, submits int
	now                                 time.Time
	dispatch                            time.Duration
}

func (d *asked) NewBuffer(size int64, u device.Usage) (device.Buffer, error) {
	d.buffers++
	b, err := d.fakeDevice.NewBuffer(size, u)
	if fb, ok := b.(*fakeBuffer); ok && u == device.Readback {
		for i := range fb.data { // no token whose logit is not finite
			fb.data[i] = 0xff
		}
	}
	return b, err
}

func (d *asked) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	d.kernels++
	return d.fakeDevice.NewKernel(s, constants)
}

func (d *asked) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	d.programs++
	return d.fakeDevice.NewProgram(commands, o)
}

func (d *asked) Submit(p device.Program) (device.Fence, error) {
	d.submits++
	d.now = d.now.Add(d.dispatch * time.Duration(p.Commands()))
	return d.fakeDevice.Submit(p)
}

// reset starts the counts anew.
func (d *asked) reset() { d.programs, d.kernels, d.buffers, d.submits = 0, 0, 0, 0 }

// A program is recorded once and submitted again: once the speed of the device is known a
// token is one submission, for which nothing is recorded, compiled or allocated. Where the
// cache needs more chunks of positions than before a token records once more, and no token
// behind it. The partner is a device that becomes slow all of a sudden, for which programs
// are cut anew.
func TestTokensAreRecordedOnce(t *testing.T) {
	paths := map[string]string{"gemma3-dense": archtest.Golden(t).Path(t, "gemma3-dense")}
	if real := os.Getenv("GANGLION_TEST_MODEL"); real != "" {
		paths["default"] = real
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) { tokensAreRecordedOnce(t, path) })
	}
}

func tokensAreRecordedOnce(t *testing.T, path string) {
	const dispatch = 60 * time.Microsecond // eight milliseconds for a token of the default model
	d := &asked{fakeDevice: newFake(), now: time.Unix(1, 0), dispatch: dispatch}
	b := New(d, Options{})
	b.now = func() time.Time { return d.now }
	e, err := engine.Open(context.Background(), engine.Config{Backend: b, Path: path, Numerics: ops.Exact, Context: 2 * ops.KVChunk, MaxRows: 64, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	slot, _, _ := e.Acquire([]int32{1, 2}, 0)
	at := 0
	run := func(n int) {
		t.Helper()
		rows := make([]engine.Row, n)
		for i := range rows {
			rows[i] = engine.Row{Slot: slot, Token: 3}
		}
		rows[n-1].Want, rows[n-1].Read = true, ops.Want{Kind: ops.WantBest}
		if _, err := e.Run(rows); err != nil {
			t.Fatal(err)
		}
		at += n
	}
	tokens := func(n int) {
		t.Helper()
		d.reset()
		from := at
		for range n {
			run(1)
		}
		if d.submits != n || d.programs+d.kernels+d.buffers != 0 {
			t.Errorf("%d tokens from position %d on: %d submissions, %d programs, %d kernels and %d buffers; want %d and none",
				n, from, d.submits, d.programs, d.kernels, d.buffers, n)
		}
	}
	run(40)
	for range 40 { // until the speed is known
		run(1)
	}
	tokens(ops.KVChunk - at)
	d.reset()
	run(1)
	if d.programs == 0 {
		t.Errorf("position %d is in another chunk, and nothing was recorded for it", at-1)
	}
	for range 2 {
		run(1)
	}
	tokens(20)
	d.dispatch *= 100
	run(1)
	d.reset()
	run(1)
	if d.programs == 0 {
		t.Error("on a device that became slow nothing was cut anew")
	}
}
