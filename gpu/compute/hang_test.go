package compute

import (
	"context"
	"errors"
	"testing"
	"time"

	"ganglion/gpu/cpu"
	"ganglion/gpu/cputime"
	"ganglion/gpu/device"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// A device that hangs beneath one runtime is late for all on it at once: none of them waits
// for a deadline of its own, or asks the device for anything. One on another device goes on.
func TestHangIsKnownToAllRuntimes(t *testing.T) {
	dev, other := newFake(), newFake()
	b, c := New(dev, Options{}), New(other, Options{})
	type model struct {
		rt   ops.Runtime
		prog ops.Program
	}
	load := func(b *Backend) model {
		rt, err := b.Load(context.Background(), pass(8), passOptions(2), nil)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := rt.Compile(ops.Shape{Rows: 2, Outs: 1})
		if err != nil {
			t.Fatal(err)
		}
		return model{rt, prog}
	}
	batch := passBatch(2, 8, 1)
	run := func(m model) error { return m.prog.Run(batch, &ops.Result{}) }
	first, second, third := load(b), load(b), load(c)
	if err := errors.Join(run(first), run(second), run(third)); err != nil {
		t.Fatal(err)
	}
	dev.failWait, other.failWait = device.ErrTimeout, nil
	if err := run(first); !errors.Is(err, ops.ErrDeviceLost) || !errors.Is(err, device.ErrTimeout) {
		t.Fatalf("a fence that does not pass gave %v", err)
	}
	submits, waits := len(dev.submits), len(dev.waits)
	_, compile := second.rt.Compile(ops.Shape{Rows: 1, Outs: 1})
	_, load2 := b.Load(context.Background(), pass(8), passOptions(2), nil)
	_, save := second.rt.SaveState(0, nil)
	for what, err := range map[string]error{"run": run(second), "compile": compile, "load": load2, "state": save} {
		if !errors.Is(err, ops.ErrDeviceLost) || !errors.Is(err, device.ErrTimeout) {
			t.Errorf("%s of another runtime gave %v", what, err)
		}
	}
	if len(dev.submits) != submits || len(dev.waits) != waits {
		t.Errorf("the device was asked for %d submissions and waited for %d times more", len(dev.submits)-submits, len(dev.waits)-waits)
	}
	if err := run(third); err != nil {
		t.Errorf("a runtime on another device: %v", err)
	}
}

// clocked is a device with a clock of its own, on which waiting takes no time; it hangs
// when it is told to.
type clocked struct {
	*fakeDevice
	now  time.Duration
	hung bool
}

func (d *clocked) Submit(p device.Program) (device.Fence, error) {
	_, err := d.fakeDevice.Submit(p)
	return clockedFence{d}, err
}

type clockedFence struct{ d *clocked }

func (f clockedFence) Times() []time.Duration { return nil }

func (f clockedFence) Wait(timeout time.Duration) error {
	if f.d.hung {
		f.d.now += timeout
		return device.ErrTimeout
	}
	return nil
}

// A hang costs the default model's request less than 5 s: what is waited for the device by
// its clock, and what loading the model on the processor and running the prompt again
// there cost, in processor time, which other programs do not add to. The partner is a
// deadline that is too long.
func TestDefaultModelGoesOnSoonAfterAHang(t *testing.T) {
	path := realModel(t)
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tt := range []struct {
		name     string
		deadline time.Duration // 0: a GPU's
		batches  []int         // rows of each; the last one hangs
		late     bool
	}{
		{"a token", 0, []int{200, 1, 1}, false},
		{"the first token", 0, []int{200, 1}, false},
		{"a prompt", 0, []int{200}, false},
		{"a long deadline", 6 * time.Second, []int{200, 1, 1}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &clocked{fakeDevice: newFake()}
			e, err := engine.Open(context.Background(), engine.Config{Backend: New(d, Options{Deadline: tt.deadline}), Path: path, Numerics: ops.Exact,
				Threads: 2, Context: 512, Slots: 1, Recover: func(error, int) (ops.Backend, error) { return c, nil }})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			slot, _, _ := e.Acquire([]int32{1, 2}, 0)
			run := func(n int) {
				rows := make([]engine.Row, n)
				for i := range rows {
					rows[i] = engine.Row{Slot: slot, Token: int32(1000 + i*97)}
				}
				if _, err := e.Run(rows); err != nil {
					t.Fatal(err)
				}
			}
			last := len(tt.batches) - 1
			for _, n := range tt.batches[:last] {
				run(n)
			}
			d.hung = true
			used := cputime.Used()
			run(tt.batches[last])
			used = cputime.Used() - used
			t.Logf("%v for the device, %v of the processor", d.now, used)
			if e.Info().Moves != 1 || e.Info().Backend != "cpu" {
				t.Fatal("nothing hung, so nothing was tested")
			}
			if took := d.now + used; (took > 5*time.Second) != tt.late {
				t.Errorf("went on after %v (%v for the device), want at most 5 s: %v", took, d.now, !tt.late)
			}
		})
	}
}
