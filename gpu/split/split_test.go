package split

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/compute"
	"ganglion/gpu/cpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/gguf"
	"ganglion/gpu/model"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/vulkan"
)

// models have every way in which layers hang together: plain ones, experts, recurrent
// state, latent attention, embeddings per layer with shared caches.
var models = []string{"gemma3-dense", "llama-moe", "qwen35-dense", "mamba2-dense", "deepseek2-moe", "gemma4-shared-kv"}

func processor(t *testing.T) ops.Backend {
	t.Helper()
	b, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// cutAt is a backend that cuts before one operation, whatever fits.
func cutAt(first, second ops.Backend, k int) *Backend {
	b := New(first, second, 0)
	b.budget, b.at = 1<<40, func(*ops.Plan) []int { return []int{k} }
	return b
}

// forced is a Backend whose plans never fit as a whole.
type forced struct{ *Backend }

func (f forced) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	if err := p.Validate(); err != nil {
		return f.Backend.Load(ctx, p, o, progress)
	}
	if err := o.Check(); err != nil || f.closed.Load() {
		return f.Backend.Load(ctx, p, o, progress)
	}
	for _, k := range f.at(p) {
		if c, err := newCut(p, k); err == nil {
			return f.load(ctx, p, c, o, progress)
		}
	}
	return f.Backend.Load(ctx, p, o, progress)
}

// logits runs a model's tokens in two batches and gives every row.
func logits(t *testing.T, b ops.Backend, path string, tokens []int32) []float32 {
	t.Helper()
	return enginetest.Logits(t, b, path, ops.Exact, tokens, 2)
}

func planOf(t *testing.T, path string) *ops.Plan {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	p, err := model.New(f, model.Options{Context: 256})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// possible lists all operations before which a plan can be cut.
func possible(p *ops.Plan) (ks []int) {
	for k := range len(p.Ops) + 1 {
		if _, err := newCut(p, k); err == nil {
			ks = append(ks, k)
		}
	}
	return ks
}

// A cut changes no bit, wherever it is possible.
func TestEveryCutGivesTheBitsOfTheWhole(t *testing.T) {
	set := archtest.Golden(t)
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			path := set.Path(t, name)
			p := planOf(t, path)
			want := logits(t, ref.New(), path, set.Tokens)
			ks := possible(p)
			t.Logf("%d of %d operations, between layers before %v", len(ks), len(p.Ops), boundaries(p))
			if len(ks) < 3 {
				t.Fatalf("only %v can be cut", ks)
			}
			for i, k := range ks {
				first := ops.Backend(ref.New())
				if i%2 == 0 {
					first = processor(t)
				}
				if !archtest.SameBits(logits(t, forced{cutAt(first, ref.New(), k)}, path, set.Tokens), want) {
					t.Errorf("a cut before operation %d (%s) changes the logits", k, p.Ops[k].Name())
				}
			}
		})
	}
}

// The partner: a handover that gives a row another row's numbers is found.
func TestAWrongHandoverIsFound(t *testing.T) {
	set := archtest.Golden(t)
	path := set.Path(t, "gemma3-dense")
	want := logits(t, ref.New(), path, set.Tokens)
	k := boundaries(planOf(t, path))[1]
	wrong := opstest.Spoiled{Backend: ref.New(), Spoil: func(heads []ops.Head) {
		if len(heads) > 1 {
			heads[0] = heads[1]
		}
	}}
	b := forced{cutAt(wrong, ref.New(), k)}
	if archtest.SameBits(logits(t, b, path, set.Tokens), want) {
		t.Error("rows in the wrong order changed nothing")
	}
}

// A plan in two halves passes the suite of backends, the halves as even as possible.
func TestConformance(t *testing.T) {
	opstest.Run(t, func(t *testing.T) ops.Backend {
		b := New(ref.New(), ref.New(), 1<<40)
		b.at = func(p *ops.Plan) []int {
			ks := possible(p)
			slices.SortStableFunc(ks, func(x, y int) int { return distance(x, len(p.Ops)/2) - distance(y, len(p.Ops)/2) })
			return ks
		}
		return forced{b}
	})
}

func distance(a, b int) int { return max(a-b, b-a) }

// The device and the processor give the bits of the processor alone.
func TestVulkan(t *testing.T) {
	d, err := vulkan.Open(vulkan.Options{})
	if err != nil {
		if strings.Contains(os.Getenv("GANGLION_REQUIRE"), "vulkan") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	device := compute.New(d, compute.Options{})
	defer device.Close()
	set := archtest.Golden(t)
	for _, name := range []string{"gemma3-dense", "qwen35-dense"} {
		path := set.Path(t, name)
		want := logits(t, processor(t), path, set.Tokens)
		ks := boundaries(planOf(t, path))
		k := ks[len(ks)/2]
		if !archtest.SameBits(logits(t, forced{cutAt(processor(t), device, k)}, path, set.Tokens), want) {
			t.Errorf("%s: the end on the device changes the logits", name)
		}
		if !archtest.SameBits(logits(t, forced{cutAt(device, processor(t), k)}, path, set.Tokens), want) {
			t.Errorf("%s: the beginning on the device changes the logits", name)
		}
	}
}

// What fits decides where the plan is cut, and the parts add up.
func TestTheBudgetDecides(t *testing.T) {
	set := archtest.Golden(t)
	p := planOf(t, set.Path(t, "gemma3-dense"))
	o := ops.Options{Slots: 2, Context: 256, MaxRows: 64, Threads: 1, Numerics: ops.Exact}
	all, last := Need(p, o), 0
	for _, budget := range []int64{all, all - 1, all / 2, all / 4, 0} {
		rt, err := New(ref.New(), named{ref.New()}, budget).Load(context.Background(), p, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		parts := rt.(ops.Parted).Parts()
		var sum ops.Memory
		for _, part := range parts {
			t.Logf("%d bytes: %s: %s: %+v", budget, part.Backend, part.Holds, part.Memory)
			sum.Weights += part.Memory.Weights
			sum.KV += part.Memory.KV
			sum.Scratch += part.Memory.Scratch
		}
		forecast := Forecast(p, o, budget)
		if !slices.EqualFunc(forecast, parts, func(f, p ops.Part) bool { return f.Holds == p.Holds && f.Memory.KV == p.Memory.KV }) {
			t.Errorf("%d bytes: the forecast was %+v", budget, forecast)
		}
		if sum != rt.Memory() {
			t.Errorf("the parts have %+v, the runtime %+v", sum, rt.Memory())
		}
		switch at := 0; {
		case budget >= all:
			if len(parts) != 1 || parts[0].Backend != "device" {
				t.Errorf("all of it fits, but the parts are %+v", parts)
			}
		case budget == 0:
			if len(parts) != 1 || parts[0].Backend != "ref" {
				t.Errorf("nothing fits, but the parts are %+v", parts)
			}
		case len(parts) == 2:
			r := rt.(*Runtime)
			if n := Need(r.sides[1].plan, o); n > budget {
				t.Errorf("the device's part needs %d bytes of %d", n, budget)
			}
			if at = len(r.sides[0].plan.Ops); at <= last {
				t.Errorf("with %d bytes the processor has %d operations, with more it had %d", budget, at, last)
			}
			last = at
		}
		rt.Close()
	}
	if last == 0 {
		t.Error("no budget cut the plan")
	}
}

// named is a backend with another name.
type named struct{ ops.Backend }

func (named) Name() string { return "device" }

// Where the device has less memory than was said a smaller part goes there, or none.
func TestLessMemoryThanWasSaid(t *testing.T) {
	set := archtest.Golden(t)
	p := planOf(t, set.Path(t, "gemma4"))
	o := ops.Options{Slots: 1, Context: 64, MaxRows: 8, Threads: 1, Numerics: ops.Exact}
	for _, refuses := range []int{1, 2, 1000} {
		rt, err := New(ref.New(), &full{Backend: ref.New(), refuses: refuses}, 1<<40).Load(context.Background(), p, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(rt.(ops.Parted).Parts()); (n == 2) != (refuses < 1000) {
			t.Errorf("the device refuses %d loads: %d parts", refuses, n)
		}
	}
	boom := errors.New("boom")
	if _, err := New(ref.New(), &full{Backend: ref.New(), refuses: 1, with: boom}, 1<<40).Load(context.Background(), p, o, nil); !errors.Is(err, boom) {
		t.Errorf("the device fails otherwise: %v", err)
	}
}

// full refuses some loads.
type full struct {
	ops.Backend
	refuses int
	with    error
}

func (f *full) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	if f.refuses--; f.refuses >= 0 {
		if f.with != nil {
			return nil, f.with
		}
		return nil, ops.ErrOutOfMemory
	}
	return f.Backend.Load(ctx, p, o, progress)
}

// What the engine says of a divided model adds up, and a failure says on which side it
// was and keeps its kind.
func TestTheEngineTellsTheParts(t *testing.T) {
	set := archtest.Golden(t)
	path := set.Path(t, "gemma4")
	p := planOf(t, path)
	c := engine.Config{Path: path, Context: 256, Slots: 2, CacheTokens: -1, Backend: New(ref.New(), &opstest.Faulty{Backend: named{ref.New()}, Kind: opstest.CallRun, At: 1, Err: ops.ErrDeviceLost},
		Need(p, ops.Options{Slots: 2, Context: 256, MaxRows: 256, Threads: 1})-1)}
	e, err := engine.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	info := e.Info()
	if len(info.Parts) != 2 || info.Backend != "device+ref" {
		t.Fatalf("on %s in the parts %+v", info.Backend, info.Parts)
	}
	a, b := info.Parts[0].Memory, info.Parts[1].Memory
	if a.Weights+b.Weights != info.WeightBytes || a.KV+b.KV != info.KVBytes || a.Scratch+b.Scratch != info.ScratchBytes {
		t.Errorf("parts of %+v and %+v for a model of %d, %d, %d", a, b, info.WeightBytes, info.KVBytes, info.ScratchBytes)
	}
	slot, _, _ := e.Acquire([]int32{1, 2}, 0)
	_, err = e.Run([]engine.Row{{Slot: slot, Token: 1}})
	if !errors.Is(err, ops.ErrDeviceLost) || !strings.Contains(err.Error(), "(device)") {
		t.Errorf("a lost device gave %v", err)
	}
}
