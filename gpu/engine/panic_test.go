package engine_test

import (
	"context"
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
