package engine_test

import (
	"context"
	"errors"
	"testing"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// hooked is a backend whose programs run through a hook.
type hooked struct {
	ops.Backend
	run func(p ops.Program, b *ops.Batch, r *ops.Result) error
}

type hookedRuntime struct {
	ops.Runtime
	b *hooked
}

type hookedProgram struct {
	ops.Program
	b *hooked
}

func (b *hooked) Load(ctx context.Context, p *ops.Plan, o ops.Options, f func(done, total int64)) (ops.Runtime, error) {
	r, err := b.Backend.Load(ctx, p, o, f)
	return hookedRuntime{r, b}, err
}

func (r hookedRuntime) Compile(s ops.Shape) (ops.Program, error) {
	p, err := r.Runtime.Compile(s)
	return hookedProgram{p, r.b}, err
}

func (p hookedProgram) Run(b *ops.Batch, r *ops.Result) error { return p.b.run(p.Program, b, r) }

// A panic in a backend leaves no token in the book whose cells were never computed.
func TestPanicResetsTheSlots(t *testing.T) {
	panics := false
	b := &hooked{Backend: ref.New(), run: func(p ops.Program, b *ops.Batch, r *ops.Result) error {
		if panics {
			panic("a fault in a backend")
		}
		return p.Run(b, r)
	}}
	e, err := engine.Open(context.Background(), engine.Config{Path: tiny, Backend: b, Context: 64, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, fault := range []bool{true, false} {
		slot, _, _ := e.Acquire([]int32{9, 9}, 0)
		panics = fault
		func() {
			defer func() {
				if p := recover(); (p != nil) != fault {
					t.Errorf("panic %v, want one: %v", p, fault)
				}
			}()
			if _, err := e.Run([]engine.Row{{Slot: slot, Token: 1}, {Slot: slot, Token: 2}}); err != nil {
				t.Error(err)
			}
		}()
		e.Release(slot)
		slot, cached, _ := e.Acquire([]int32{1, 2, 3}, 0)
		if want := map[bool]int{true: 0, false: 2}[fault]; cached != want {
			t.Errorf("after a panic (%v): %d tokens are said to be in place, want %d", fault, cached, want)
		}
		e.Release(slot)
	}
}

// A batch that is stopped leaves no token in the book either, and the same batch gives the same
// afterwards; one that may be stopped and is not runs as ever.
func TestStopResetsTheSlots(t *testing.T) {
	e, err := engine.Open(context.Background(), engine.Config{Path: tiny, Backend: ref.New(), Context: 64, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var want int32
	for i, stop := range []*ops.Stop{nil, new(ops.Stop), new(ops.Stop), nil} {
		stopped := i == 2
		if stopped {
			stop.Set()
		}
		e.StopWith(stop)
		slot, _, _ := e.Acquire([]int32{9, 9}, uint64(i))
		heads, err := e.Run([]engine.Row{{Slot: slot, Token: 1}, {Slot: slot, Token: 2, Want: true}})
		if errors.Is(err, ops.ErrStopped) != stopped || !stopped && err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		switch {
		case i == 0:
			want = heads[0].Best
		case !stopped && heads[0].Best != want:
			t.Errorf("run %d: token %d, want %d", i, heads[0].Best, want)
		}
		e.Release(slot)
		slot, cached, _ := e.Acquire([]int32{1, 2, 3}, uint64(i))
		if want := map[bool]int{true: 0, false: 2}[stopped]; cached != want {
			t.Errorf("run %d: %d tokens are said to be in place, want %d", i, cached, want)
		}
		e.Release(slot)
	}
}
