package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cputime"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
)

// recovered opens a model on a device and lets it go on on others, in their order.
func recovered(t *testing.T, c engine.Config, device ops.Backend, others ...ops.Backend) *engine.Engine {
	t.Helper()
	c.Backend = device
	c.Recover = func(_ error, failures int) (ops.Backend, error) {
		if failures > len(others) {
			return nil, nil
		}
		return others[failures-1], nil
	}
	e, err := engine.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// story is what an appliance does with an engine in a few requests: prompts in pieces,
// tokens one by one, guesses that are taken back, batches of several slots, adapters, a
// sequence that ends and one that begins like it. It returns every row of logits.
func story(t *testing.T, e *engine.Engine, adapters []engine.AdapterScale) (out []float32) {
	t.Helper()
	vocab := int32(e.Info().Vocab)
	prompt := make([]int32, 90)
	for i := range prompt {
		prompt[i] = (3 + int32(i)*37) % vocab
	}
	begin := func(p []int32, acting []engine.AdapterScale) (slot int, rest []int32) {
		slot, cached, ok := e.Acquire(p, engine.Salt(acting))
		if !ok {
			t.Fatal("no free slot")
		}
		if err := e.SetAdapters(slot, acting); err != nil {
			t.Fatal(err)
		}
		return slot, p[cached:]
	}
	run := func(rows ...[]engine.Row) []engine.Head {
		heads, err := e.Run(slices.Concat(rows...))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range heads {
			out = append(out, h.Row...)
		}
		return heads
	}
	last := func(slot int, tokens []int32) []engine.Row {
		for ; len(tokens) > 20; tokens = tokens[20:] {
			run(quiet(slot, tokens[:20]))
		}
		return append(quiet(slot, tokens[:len(tokens)-1]), wantAll(slot, tokens[len(tokens)-1:])...)
	}
	a, rest := begin(prompt, nil)
	next := run(last(a, rest))[0].Best
	guess := func(slot int, tok int32) int32 { // behind the prompt
		if err := e.Mark(slot); err != nil {
			t.Fatal(err)
		}
		heads := run(wantAll(slot, []int32{tok, 5, 6, 7}))
		next := heads[0].Best
		kept, err := e.Truncate(slot, len(prompt)+1)
		if err != nil {
			t.Fatal(err)
		}
		if kept <= len(prompt) {
			run(quiet(slot, append(slices.Clone(prompt), tok)[kept:]))
		}
		return next
	}
	next = guess(a, next)
	b, rest := begin(append(slices.Clone(prompt[:70]), 9, 8, 7), adapters)
	nextB := run(last(b, rest))[0].Best
	for range 5 {
		heads := run(wantAll(a, []int32{next}), wantAll(b, []int32{nextB}))
		next, nextB = heads[0].Best, heads[1].Best
	}
	e.Release(a)
	c, rest := begin(append(slices.Clone(prompt), 11), nil)
	nextC := run(wantAll(b, []int32{nextB}), last(c, rest))[1].Best
	for range 3 {
		nextC = run(wantAll(c, []int32{nextC}))[0].Best
	}
	e.Release(b)
	e.Release(c)
	return out
}

func quiet(slot int, tokens []int32) (rows []engine.Row) {
	for _, id := range tokens {
		rows = append(rows, engine.Row{Slot: slot, Token: id})
	}
	return rows
}

// A device that fails in the middle of the story changes none of it, whichever call it
// was: the bits are the same on the backend that goes on.
func TestStoryGoesOnWhenADeviceFails(t *testing.T) {
	set := archtest.Golden(t)
	for _, tt := range []struct{ model, device, other string }{
		{"gemma3-dense", "ref", "cpu"}, {"llama-dense", "cpu", "ref"}, {"lfm2-dense", "ref", "cpu"}, // windows, none, short convolutions
		{"mamba-dense", "cpu", "cpu"}, {"qwen3next-moe", "cpu", "cpu"}, {"gemma4-shared-kv", "cpu", "cpu"}, {"deepseek2-moe", "cpu", "cpu"},
	} {
		t.Run(tt.model, func(t *testing.T) {
			path := set.Path(t, tt.model)
			l, _ := adaptable(t, path)
			c := engine.Config{Path: path, Adapters: files(l), Numerics: ops.Exact, Context: 128, MaxRows: 24, Slots: 2}
			acting := []engine.AdapterScale{{Scale: 0.5}}
			device := func() *opstest.Faulty { return &opstest.Faulty{Backend: backends[tt.device](t)} }
			count := device()
			want := story(t, recovered(t, c, count), acting)
			for _, f := range []struct {
				kind opstest.Call
				err  error
				step int
			}{
				{opstest.CallRun, ops.ErrDeviceLost, 1}, {opstest.CallRun, ops.ErrOutOfMemory, 6},
				{opstest.CallCompile, ops.ErrOutOfMemory, 1}, {opstest.CallLoad, ops.ErrOutOfMemory, 1}, {opstest.CallCopyPage, ops.ErrDeviceLost, 1},
				{opstest.CallSaveState, ops.ErrDeviceLost, 1}, {opstest.CallLoadState, ops.ErrDeviceLost, 1},
			} {
				for at := 1; at <= count.Calls(f.kind); at += f.step {
					d := device()
					d.Kind, d.At, d.Err = f.kind, at, f.err
					e := recovered(t, c, d, backends[tt.other](t))
					same(t, story(t, e, acting), want, fmt.Sprintf("%s fails with %v at call", f.kind, f.err), at)
					if info := e.Info(); f.kind == opstest.CallLoad && (info.Moves != 0 || info.Backend != tt.other || info.Moved == "") {
						t.Errorf("after a failure to load: %d moves, backend %s, %q", info.Moves, info.Backend, info.Moved)
					}
					if info := e.Info(); f.kind == opstest.CallRun && (info.Moves != 1 || info.Backend != tt.other || info.Moved == "") {
						t.Errorf("after a failure at run %d: %d moves, backend %s, %q", at, info.Moves, info.Backend, info.Moved)
					}
					e.Close()
				}
			}
		})
	}
}

// The partner: where what the slots hold is not run again as it was, the story differs.
func TestStoryTellsARunThatWasLeftOut(t *testing.T) {
	c := engine.Config{Path: tiny, Numerics: ops.Exact, Context: 128, MaxRows: 24, Slots: 2}
	want := story(t, recovered(t, c, ref.New()), nil)
	found := 0
	for at := 1; at <= 4; at++ {
		e := recovered(t, c, &opstest.Faulty{Backend: ref.New(), Kind: opstest.CallRun, At: 9, Err: ops.ErrDeviceLost},
			&opstest.Faulty{Backend: ref.New(), Kind: opstest.CallRun, At: at, Skip: true})
		if got := story(t, e, nil); !slices.Equal(got, want) {
			found++
		}
	}
	if found != 4 {
		t.Errorf("%d of 4 runs that were left out are seen", found)
	}
}

// Devices that fail one after the other, also while they take over, are all left behind.
func TestSeveralDevicesFail(t *testing.T) {
	c := engine.Config{Path: tiny, Numerics: ops.Exact, Context: 128, MaxRows: 24, Slots: 2}
	want := story(t, recovered(t, c, ref.New()), nil)
	lost := func(kind opstest.Call, at int) ops.Backend {
		return &opstest.Faulty{Backend: ref.New(), Kind: kind, At: at, Err: ops.ErrDeviceLost}
	}
	e := recovered(t, c, lost(opstest.CallRun, 7), lost(opstest.CallLoad, 1), lost(opstest.CallRun, 3), lost(opstest.CallCompile, 2), lost(opstest.CallRun, 12), backends["cpu"](t))
	same(t, story(t, e, nil), want, "devices", 6)
	if info := e.Info(); info.Moves < 2 || info.Backend != "cpu" {
		t.Errorf("%d moves, now on %s: %s", info.Moves, info.Backend, info.Moved)
	}
}

// Where nothing is left, every slot's next run says so; no text goes on from nothing.
func TestNothingIsLeftToGoOnWith(t *testing.T) {
	c := engine.Config{Path: tiny, Context: 64, Slots: 2}
	e := recovered(t, c, &opstest.Faulty{Backend: ref.New(), Kind: opstest.CallRun, At: 3, Err: ops.ErrDeviceLost},
		&opstest.Faulty{Backend: ref.New(), Kind: opstest.CallLoad, At: 1, Err: ops.ErrOutOfMemory})
	a, _, _ := e.Acquire([]int32{1, 2}, 0)
	b, _, _ := e.Acquire([]int32{3, 4}, 0)
	for i, slot := range []int{a, b, a, b, a} {
		_, err := e.Run(quiet(slot, []int32{5}))
		if (err != nil) != (i >= 2) || (err != nil && !(errors.Is(err, ops.ErrDeviceLost) && errors.Is(err, ops.ErrOutOfMemory))) {
			t.Errorf("run %d: error %v", i, err)
		}
	}
}

// A fault of the caller or of the file is none of the device: nothing is asked for.
func TestFaultsOfOthersMoveNothing(t *testing.T) {
	e := recovered(t, engine.Config{Path: tiny, Context: 64, Slots: 1}, ref.New(), ref.New())
	slot, _, _ := e.Acquire([]int32{1, 2}, 0)
	if _, err := e.Run(quiet(slot, []int32{-7})); err == nil {
		t.Error("a token outside the vocabulary was run")
	}
	if _, err := e.Truncate(slot, 99); err == nil {
		t.Error("more tokens than there are were kept")
	}
	if err := e.Mark(5); err == nil {
		t.Error("a slot that is not there was marked")
	}
	if _, err := e.Truncate(5, 0); err == nil {
		t.Error("tokens of a slot that is not there were taken back")
	}
	if info := e.Info(); info.Moves != 0 {
		t.Errorf("moved: %s", info.Moved)
	}
}

// A driver that hangs while it is closed holds the request up for a moment only.
func TestHangingDeviceIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		defer close(let)
		e := recovered(t, engine.Config{Path: tiny, Context: 64, Slots: 1}, hanging{&opstest.Faulty{Backend: ref.New(), Kind: opstest.CallRun, At: 1, Err: ops.ErrDeviceLost}, let}, ref.New())
		slot, _, _ := e.Acquire([]int32{1, 2}, 0)
		from := time.Now()
		if _, err := e.Run(wantAll(slot, []int32{1})); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(from); took > 5*time.Second {
			t.Errorf("went on after %v, want at most 5 s", took)
		}
		if err := e.Close(); err == nil {
			t.Error("closing says nothing of a device that does not close")
		}
	})
}

// hanging is a backend whose runtimes close when they are let.
type hanging struct {
	ops.Backend
	let chan struct{}
}

func (h hanging) Load(ctx context.Context, p *ops.Plan, o ops.Options, f func(done, total int64)) (ops.Runtime, error) {
	r, err := h.Backend.Load(ctx, p, o, f)
	return hangingRuntime{r, h.let}, err
}

type hangingRuntime struct {
	ops.Runtime
	let chan struct{}
}

func (r hangingRuntime) Close() error {
	<-r.let
	return r.Runtime.Close()
}

// A lost device costs the default model's request less than 5 s.
func TestDefaultModelGoesOnSoon(t *testing.T) {
	path := os.Getenv("GANGLION_TEST_MODEL")
	if path == "" {
		t.Skip("GANGLION_TEST_MODEL names no model")
	}
	device := &opstest.Faulty{Backend: backends["cpu"](t), Kind: opstest.CallRun, At: 3, Err: ops.ErrDeviceLost}
	e := recovered(t, engine.Config{Path: path, Numerics: ops.Exact, Threads: 2}, device, backends["cpu"](t))
	slot, _, _ := e.Acquire([]int32{1, 2}, 0)
	prompt := make([]int32, 200)
	for i := range prompt {
		prompt[i] = int32(1000 + i*97)
	}
	heads, err := e.Run(append(quiet(slot, prompt[:199]), wantAll(slot, prompt[199:])...))
	for i := 0; err == nil && i < 2; i++ {
		from := cputime.Used()
		heads, err = e.Run(wantAll(slot, []int32{heads[0].Best}))
		took := cputime.Used() - from // of all threads together
		t.Logf("step %d: %v", i, took)
		if took > 5*time.Second {
			t.Errorf("went on after %v, want at most 5 s", took)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if e.Info().Moves != 1 {
		t.Error("nothing was lost, so nothing was tested")
	}
}
