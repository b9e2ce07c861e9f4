package engine_test

import (
	"context"
	"testing"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// panicky is ref with programs that panic on demand.
type panicky struct {
	ops.Backend
	now bool
}

type panickyRuntime struct {
	ops.Runtime
	b *panicky
}

type panickyProgram struct {
	ops.Program
	b *panicky
}

func (b *panicky) Load(ctx context.Context, p *ops.Plan, o ops.Options, f func(done, total int64)) (ops.Runtime, error) {
	r, err := b.Backend.Load(ctx, p, o, f)
	return panickyRuntime{r, b}, err
}

func (r panickyRuntime) Compile(s ops.Shape) (ops.Program, error) {
	p, err := r.Runtime.Compile(s)
	return panickyProgram{p, r.b}, err
}

func (p panickyProgram) Run(b *ops.Batch, r *ops.Result) error {
	if p.b.now {
		panic("a fault in a backend")
	}
	return p.Program.Run(b, r)
}

// A panic in a backend leaves no token in the book whose cells were never computed.
func TestPanicResetsTheSlots(t *testing.T) {
	b := &panicky{Backend: ref.New()}
	e, err := engine.Open(context.Background(), engine.Config{Path: tiny, Backend: b, Context: 64, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, fault := range []bool{true, false} {
		slot, _, _ := e.Acquire([]int32{9, 9}, 0)
		b.now = fault
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
