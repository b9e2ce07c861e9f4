package phase

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/compute"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/gl"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/split"
	"ganglion/gpu/vulkan"
)

// models have every kind of cache and state: windows, none, latent and shared caches,
// experts, and each recurrent operation, beside attention and alone.
var models = []string{"gemma3-dense", "llama-moe", "deepseek2-moe", "gemma4-shared-kv", "lfm2-dense", "mamba-dense", "mamba2-dense", "qwen35-dense", "falcon-h1-dense"}

func processor(t *testing.T) ops.Backend {
	t.Helper()
	b, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// turns lets sequences change sides all the time, so that every batch carries something.
func turns(b *Backend) *Backend {
	b.decide = func(from, rows, _ int) Phase { return Phase((from*7 + rows*3) / 2 % 2) }
	return b
}

func TestConformance(t *testing.T) {
	t.Run("as phases", func(t *testing.T) {
		opstest.Run(t, func(t *testing.T) ops.Backend { return New(ref.New(), ref.New()) })
	})
	t.Run("turns", func(t *testing.T) {
		opstest.Run(t, func(t *testing.T) ops.Backend { return turns(New(ref.New(), ref.New())) })
	})
}

// request is a text that is run: its first prompt tokens are read, the others come one by
// one.
type request struct {
	tokens     []int32
	prompt     int
	slot, done int
	rows       [][]float32 // of logits, from the prompt's last token on
}

// requests draws texts, of which some begin alike.
func requests(r *rand.Rand, n, vocab int) (all []*request) {
	draw := func(n int) (ids []int32) {
		for range n {
			ids = append(ids, int32(3+r.IntN(vocab-3)))
		}
		return ids
	}
	texts := [][]int32{draw(110), draw(110), draw(110)}
	for range n {
		shared := texts[r.IntN(len(texts))]
		prompt := slices.Concat(shared[:r.IntN(len(shared)+1)], draw(1+r.IntN(30)))
		all = append(all, &request{tokens: append(prompt, draw(1+r.IntN(25))...), prompt: len(prompt)})
	}
	return all
}

// life runs some requests drawn from a seed: prompts in pieces and beside tokens,
// beginnings that are known already, guesses that are taken back. It returns the logits of
// all requests from their prompts' last tokens on.
func life(t *testing.T, e *engine.Engine, seed uint64, n int) (out []float32) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	all := requests(rand.New(rand.NewPCG(seed, 2)), n, e.Info().Vocab)
	waiting, live := all, []*request(nil)
	for len(waiting)+len(live) > 0 {
		if len(waiting) > 0 && len(live) < e.Info().Slots && (len(live) == 0 || r.IntN(4) == 0) {
			q := waiting[0]
			waiting = waiting[1:]
			ok := false
			if q.slot, q.done, ok = e.Acquire(q.tokens[:q.prompt], 0); !ok {
				t.Fatal("no free slot")
			}
			live = append(live, q)
		}
		batch(t, e, r, live)
		live = slices.DeleteFunc(live, func(q *request) bool {
			if over := q.done == len(q.tokens); over {
				e.Release(q.slot)
				return true
			}
			return false
		})
	}
	for i, q := range all {
		if got, want := len(q.rows), len(q.tokens)-q.prompt+1; got != want {
			t.Fatalf("request %d: %d rows of logits, want %d", i, got, want)
		}
		out = append(out, slices.Concat(q.rows...)...)
	}
	return out
}

// batch runs a piece of each request.
func batch(t *testing.T, e *engine.Engine, r *rand.Rand, live []*request) {
	t.Helper()
	var rows []engine.Row
	var ran []*request
	var wants, guesses []int // of ran
	for _, q := range live {
		n := min(1+r.IntN(50), q.prompt-q.done)
		if q.done >= q.prompt {
			n = 1
		}
		if n = min(n, e.Info().MaxRows-len(rows)); n <= 0 {
			continue
		}
		part, wanted, guessed := q.tokens[q.done:q.done+n], 0, 0
		if q.done+n >= q.prompt {
			wanted = 1
		}
		if more := r.IntN(4); q.done >= q.prompt && len(rows)+n+more <= e.Info().MaxRows {
			if err := e.Mark(q.slot); err != nil {
				t.Fatal(err)
			}
			part, guessed = append(slices.Clone(part), []int32{5, 6, 7, 8}[:more]...), more
		}
		for i, id := range part {
			rows = append(rows, engine.Row{Slot: q.slot, Token: id, Want: wanted == 1 && i >= n-1, Read: ops.Want{Kind: ops.WantRow}})
		}
		q.done += n
		ran, wants, guesses = append(ran, q), append(wants, wanted), append(guesses, guessed)
	}
	if len(rows) == 0 {
		return
	}
	heads, err := e.Run(rows)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range ran {
		if wants[i] == 1 {
			if heads[0].Err != nil {
				t.Fatal(heads[0].Err)
			}
			if q.done-q.prompt == len(q.rows) { // not one that runs again
				q.rows = append(q.rows, slices.Clone(heads[0].Row))
			}
			heads = heads[1+guesses[i]:]
		}
		if guesses[i] > 0 {
			if q.done, err = e.Truncate(q.slot, q.done); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func open(t *testing.T, b ops.Backend, path string, others ...ops.Backend) *engine.Engine {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{Backend: b, Path: path, Numerics: ops.Exact, Threads: 2, Context: 192, MaxRows: 64, Slots: 3,
		Recover: func(_ error, failures int) (ops.Backend, error) {
			if failures > len(others) {
				return nil, nil
			}
			return others[failures-1], nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func same(t *testing.T, got, want []float32, what string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d logits, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s: logit %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// Whichever side runs what, the bits are those of one backend.
func TestLifeGoesOnAcrossSides(t *testing.T) {
	set := archtest.Golden(t)
	for i, name := range models {
		t.Run(name, func(t *testing.T) {
			path, seed := set.Path(t, name), uint64(100+i)
			want := life(t, open(t, processor(t), path), seed, 8)
			same(t, life(t, open(t, New(ref.New(), processor(t)), path), seed, 8), want, "prompts on ref, tokens on cpu")
			same(t, life(t, open(t, New(processor(t), ref.New()), path), seed, 8), want, "prompts on cpu, tokens on ref")
			same(t, life(t, open(t, turns(New(processor(t), ref.New())), path), seed, 8), want, "in turns")
			divided := split.New(processor(t), ref.New(), 1<<20)
			same(t, life(t, open(t, turns(New(divided, ref.New())), path), seed, 8), want, "in turns, prompts on two backends")
		})
	}
}

// The partner: cells or states that are not carried are seen.
func TestLifeTellsWhatWasNotCarried(t *testing.T) {
	set := archtest.Golden(t)
	for name, kind := range map[string]opstest.Call{"gemma3-dense": opstest.CallWritePage, "mamba-dense": opstest.CallLoadState} {
		path := set.Path(t, name)
		want := life(t, open(t, processor(t), path), 3, 8)
		for at := range 3 {
			lazy := &opstest.Faulty{Backend: processor(t), Kind: kind, At: at + 1, Skip: true}
			if slices.Equal(life(t, open(t, New(ref.New(), lazy), path), 3, 8), want) && at == 2 {
				t.Errorf("%s: %s was left out and nothing shows it", name, kind)
			}
		}
	}
}

// device opens a driver's backend, or skips where there is none.
func onDevice(t *testing.T, api string, open func() (device.Device, error)) ops.Backend {
	t.Helper()
	b := compute.New(devicetest.Open(t, api, open), compute.Options{})
	t.Cleanup(func() { b.Close() })
	return b
}

// GPUs carry as well as they compute.
func TestPhasesOnGPUs(t *testing.T) {
	set := archtest.Golden(t)
	for _, tt := range []struct {
		name, api string
		open      func() (device.Device, error)
		mix       func(t *testing.T, gpu ops.Backend) *Backend
	}{
		{"vulkan,cpu", "vulkan", func() (device.Device, error) { return vulkan.Open(vulkan.Options{}) },
			func(t *testing.T, gpu ops.Backend) *Backend { return New(gpu, processor(t)) }},
		{"ref,gl", "gl", func() (device.Device, error) { return gl.Open(gl.Options{}) },
			func(t *testing.T, gpu ops.Backend) *Backend { return New(ref.New(), gpu) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gpu := onDevice(t, tt.api, tt.open)
			for _, name := range []string{"gemma3-dense", "mamba2-dense", "qwen35-dense"} {
				path := set.Path(t, name)
				want := life(t, open(t, processor(t), path), 7, 3)
				same(t, life(t, open(t, tt.mix(t, gpu), path), 7, 3), want, name)
				if t.Failed() || os.Getenv("GANGLION_GPU_ALL") == "" {
					continue
				}
				same(t, life(t, open(t, turns(tt.mix(t, gpu)), path), 7, 3), want, name+" in turns")
			}
		})
	}
}

// A device that fails on either side, at whatever call, changes nothing.
func TestLifeGoesOnWhenASideFails(t *testing.T) {
	set := archtest.Golden(t)
	for _, name := range []string{"gemma3-dense", "qwen35-dense"} {
		path := set.Path(t, name)
		want := life(t, open(t, processor(t), path), 11, 4)
		for phase := range Phase(2) {
			mix := func(f *opstest.Faulty) *Backend {
				f.Backend = ref.New()
				sides := [2]ops.Backend{processor(t), processor(t)}
				sides[phase] = f
				return New(sides[Prompt], sides[Decode])
			}
			var count opstest.Faulty
			same(t, life(t, open(t, mix(&count), path), 11, 4), want, "nothing fails")
			for _, kind := range []opstest.Call{opstest.CallLoad, opstest.CallCompile, opstest.CallRun, opstest.CallReadPage, opstest.CallWritePage, opstest.CallSaveState, opstest.CallLoadState} {
				calls := count.Calls(kind)
				for at := 1; at <= calls; at += 1 + calls/3 {
					e := open(t, mix(&opstest.Faulty{Kind: kind, At: at, Err: ops.ErrDeviceLost}), path, processor(t))
					same(t, life(t, e, 11, 4), want, fmt.Sprintf("%s: %s %d fails on the side of %s", name, kind, at, phase))
					if info := e.Info(); info.Backend != "cpu" || !strings.Contains(info.Moved, phase.String()) {
						t.Errorf("%s %d: on %s: %q", kind, at, info.Backend, info.Moved)
					}
					e.Close()
				}
			}
		}
	}
}

// A prompt is carried once, page by page, and tokens carry nothing more.
func TestAPromptIsCarriedOnce(t *testing.T) {
	set := archtest.Golden(t)
	b := counting{New(processor(t), processor(t)), new(*Runtime)}
	e := open(t, b, set.Path(t, "gemma3-dense"))
	prompt := make([]int32, 130)
	for i := range prompt {
		prompt[i] = int32(5 + i)
	}
	slot, _, _ := e.Acquire(prompt, 0)
	run := func(ids []int32, want bool) {
		var rows []engine.Row
		for i, id := range ids {
			rows = append(rows, engine.Row{Slot: slot, Token: id, Want: want && i == len(ids)-1})
		}
		if _, err := e.Run(rows); err != nil {
			t.Fatal(err)
		}
	}
	run(prompt[:64], false)
	run(prompt[64:128], false)
	rt := *b.rt
	if rt.carry.pages != 0 {
		t.Errorf("%d pages were carried while the prompt was read", rt.carry.pages)
	}
	run(prompt[128:], true)
	groups := len(rt.paging.Groups)
	first := rt.carry.pages
	if most := 2 * groups; first == 0 || first > most {
		t.Errorf("%d pages were carried of a prompt of 2 pages in %d groups", first, groups)
	}
	for range 20 {
		run([]int32{9}, true)
	}
	if rt.carry.pages != first {
		t.Errorf("%d more pages were carried while it decoded", rt.carry.pages-first)
	}
	if n := testing.AllocsPerRun(20, func() { run1(t, e, slot) }); n > 0 {
		t.Errorf("a token allocates %v times", n)
	}
}

var oneRow = make([]engine.Row, 1)

func run1(t *testing.T, e *engine.Engine, slot int) {
	oneRow[0] = engine.Row{Slot: slot, Token: 9, Want: true}
	if _, err := e.Run(oneRow); err != nil {
		t.Fatal(err)
	}
}

// counting shows the runtime that it loads.
type counting struct {
	*Backend
	rt **Runtime
}

func (c counting) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	rt, err := c.Backend.Load(ctx, p, o, progress)
	if err == nil {
		*c.rt = rt.(*Runtime)
	}
	return rt, err
}

// Both sides' memory counts, before and after loading, and the parts say which phase they
// serve.
func TestMemoryOfBothSidesCounts(t *testing.T) {
	set := archtest.Golden(t)
	path := set.Path(t, "gemma3-dense")
	one, two := open(t, ref.New(), path), open(t, New(ref.New(), ref.New()), path)
	if got, want := two.Forecast().Total(), 2*one.Forecast().Total(); got != want {
		t.Errorf("a forecast of %d bytes, want %d", got, want)
	}
	info := two.Info()
	if len(info.Parts) != 2 || info.Parts[0].Phase != ops.PhasePrompt || info.Parts[1].Phase != ops.PhaseDecode || info.Backend != "ref/ref" {
		t.Errorf("on %s: %+v", info.Backend, info.Parts)
	}
	var sum int64
	for _, p := range info.Parts {
		sum += p.Memory.KV
	}
	if sum != info.KVBytes || info.KVBytes < 2*(one.Info().KVBytes-1<<16) {
		t.Errorf("%d bytes of caches, the parts have %d, one side has %d", info.KVBytes, sum, one.Info().KVBytes)
	}
	_, err := engine.Open(context.Background(), engine.Config{Backend: New(ref.New(), ref.New()), Path: path, Context: 192, MaxRows: 64, Slots: 3,
		Available: func() int64 { return one.Forecast().Total() * 3 / 2 }})
	if !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("in the memory of one and a half: %v", err)
	}
}
