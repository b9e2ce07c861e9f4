package compute

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
)

// pass is a plan whose logits are the row of Batch.Embeds.
func pass(width int) *ops.Plan {
	return opstest.Plan("pass", width, func(_ *ops.Builder, row ops.View) ops.View { return row })
}

// passBatch is a batch of rows of known numbers, some of which are wanted.
func passBatch(rows, width int, outs ...int32) *ops.Batch {
	b := &ops.Batch{}
	for r := range rows {
		b.Tokens, b.Pos, b.Slot = append(b.Tokens, -1), append(b.Pos, int32(r)), append(b.Slot, 0)
		for c := range width {
			b.Embeds = append(b.Embeds, float32(r*width+c))
		}
	}
	for _, r := range outs {
		b.Outs, b.Want = append(b.Outs, r), append(b.Want, ops.Want{Kind: ops.WantRow})
	}
	return b
}

func passOptions(rows int) ops.Options {
	return ops.Options{Slots: 1, Context: rows, MaxRows: rows, Threads: 1}
}

// limited is a device with other limits.
type limited struct {
	device.Device
	limits device.Limits
}

func (d limited) Limits() device.Limits { return d.limits }

// A batch whose activations are beyond a binding runs in parts.
func TestLargeBatchesRunInParts(t *testing.T) {
	const rows, width = 60, 700
	d := limited{Device: drivers[0].device(t)}
	d.limits = d.Device.Limits()
	d.limits.BindingBytes = 64 << 10
	b := New(d, Options{Shared: true})
	defer b.Close()
	rt, err := b.Load(context.Background(), pass(width), passOptions(rows), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	prog, err := rt.Compile(ops.Shape{Rows: rows, Outs: rows})
	if err != nil {
		t.Fatal(err)
	}
	if part := prog.(*Program).part; part.Rows >= rows/2 || part.Outs > part.Rows {
		t.Fatalf("parts of %+v: the test tests nothing", part)
	}
	every := make([]int32, rows)
	for i := range every {
		every[i] = int32(i)
	}
	for _, outs := range [][]int32{every, {0, 59}, {38}, nil, every[7:31]} {
		batch := passBatch(rows, width, outs...)
		batch.Pages = make([]int32, rt.(*Runtime).paging.Entries())
		var res ops.Result
		if err := prog.Run(batch, &res); err != nil {
			t.Fatal(err)
		}
		if len(res.Heads) != len(outs) {
			t.Fatalf("%d heads for %d outputs", len(res.Heads), len(outs))
		}
		for i, r := range outs {
			if want := batch.Embeds[int(r)*width : int(r+1)*width]; !slices.Equal(res.Heads[i].Row, want) {
				t.Errorf("outputs %v: row %d is %v…, want %v…", outs, r, res.Heads[i].Row[:3], want[:3])
			}
		}
	}
}

// A run that loses the device says so, and so does everything after it without asking
// the device again.
func TestLostDeviceFailsFast(t *testing.T) {
	d := newFake()
	b := New(d, Options{})
	rt, err := b.Load(context.Background(), pass(8), passOptions(2), nil)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := rt.Compile(ops.Shape{Rows: 2, Outs: 1})
	if err != nil {
		t.Fatal(err)
	}
	batch := passBatch(2, 8, 1)
	if err := prog.Run(batch, &ops.Result{}); err != nil {
		t.Fatal(err)
	}
	d.failWait = device.ErrLost
	if err := prog.Run(batch, &ops.Result{}); !errors.Is(err, ops.ErrDeviceLost) {
		t.Fatalf("a lost device gave %v", err)
	}
	d.failWait = nil
	before := len(d.submits)
	_, compile := rt.Compile(ops.Shape{Rows: 1, Outs: 1})
	for what, err := range map[string]error{"run": prog.Run(batch, &ops.Result{}), "compile": compile, "load state": rt.LoadState(0, nil)} {
		if !errors.Is(err, ops.ErrDeviceLost) {
			t.Errorf("%s after the loss gave %v", what, err)
		}
	}
	if len(d.submits) != before {
		t.Error("the lost device was asked again")
	}
	if err := errors.Join(rt.Close(), b.Close()); err != nil || d.buffers != 0 || d.programs != 0 {
		t.Errorf("%d buffers and %d programs left open, %v", d.buffers, d.programs, err)
	}
}

// A load that runs out of memory says so and leaves nothing behind, wherever it happens.
func TestOutOfMemoryLeavesNothing(t *testing.T) {
	for n := 0; ; n++ {
		d := newFake()
		left := n
		d.failBuffer = func() error {
			if left--; left < 0 {
				return device.ErrOutOfMemory
			}
			return nil
		}
		b := New(d, Options{})
		rt, err := b.Load(context.Background(), pass(8), passOptions(2), nil)
		if err == nil {
			_, err = rt.Compile(ops.Shape{Rows: 2, Outs: 1})
			rt.Close()
		}
		if d.buffers != 0 || d.programs != 0 {
			t.Errorf("failure of buffer %d: %d buffers and %d programs left open", n, d.buffers, d.programs)
		}
		if err == nil {
			if n < 3 {
				t.Errorf("no more than %d buffers: the test tests nothing", n)
			}
			return
		}
		if !errors.Is(err, ops.ErrOutOfMemory) {
			t.Fatalf("failure of buffer %d gave %v", n, err)
		}
	}
}

// A submission that failed may have left workgroups half-way: the next run finds the
// counters of the last of them at 0.
func TestCountersAreSettled(t *testing.T) {
	const rows, width = 8, 64
	dev := newFake()
	b := New(dev, Options{})
	defer b.Close()
	plan := opstest.Plan("norms", width, func(b *ops.Builder, row ops.View) ops.View { return b.RMSNorm("y", nil, 1e-6, 0, row) })
	loaded, err := b.Load(context.Background(), plan, passOptions(rows), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	prog, err := loaded.Compile(ops.Shape{Rows: rows, Outs: rows})
	if err != nil {
		t.Fatal(err)
	}
	r := loaded.(*Runtime)
	batch := passBatch(rows, width, 0, 3, 7)
	batch.Pages = make([]int32, r.paging.Entries())
	if err := prog.Run(batch, &ops.Result{}); err != nil {
		t.Fatal(err)
	}
	counts := r.counts.buf.(*fakeBuffer).data
	for _, fails := range []bool{false, true} {
		counts[0] = 3
		if fails {
			dev.failSubmit = device.ErrOutOfMemory
			if err := prog.Run(batch, &ops.Result{}); err == nil {
				t.Fatal("no error")
			}
			dev.failSubmit = nil
		}
		if err := prog.Run(batch, &ops.Result{}); err != nil {
			t.Fatal(err)
		}
		if settled := counts[0] == 0; settled != fails {
			t.Errorf("after a failure %v: the counter is %d", fails, counts[0])
		}
	}
}
