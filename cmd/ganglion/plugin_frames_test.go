package main

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu"
	"ganglion/gpu/archtest"
	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/gl"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/vulkan"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

// watcher is a model that notes what is read back of a step.
type watcher struct {
	appliance.Model
	reads []ops.Want
	bytes func() int64 // that a step read
	most  int64
}

func (w *watcher) Run(rows []engine.Row) ([]engine.Head, error) {
	wanted := false
	for _, r := range rows {
		if r.Want {
			w.reads, wanted = append(w.reads, r.Read), true
		}
	}
	heads, err := w.Model.Run(rows)
	if wanted {
		w.most = max(w.most, w.bytes())
	}
	return heads, err
}

// looked is what plugins saw and did on a backend.
type looked struct {
	tokens []int32
	frames [][]byte // statistics and candidates
	watcher
}

// look runs a request with a plugin that notes what it sees and keeps half of the
// candidates; with full it wants the whole row besides.
func look(t *testing.T, b ops.Backend, read func() int64, full bool) *looked {
	t.Helper()
	l := &looked{}
	p := &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "look", Slot: abi.SlotTruncate, Truncates: true}, Candidates: 256, Edits: -1, Full: full}
	p.Hooks = map[abi.Hook]pipelinetest.Code{abi.HookLogits: func(f *pipelinetest.Frame) abi.Action {
		n := f.U(abi.OffCandN)
		seen := slices.Clone(f.B[abi.OffMax : abi.OffNFinite+4])
		seen = append(seen, f.B[f.L.CandIDs:][:4*n]...)
		l.frames = append(l.frames, append(seen, f.B[f.L.CandLogits:][:4*n]...))
		f.Put(abi.OffCandN, n/2)
		return abi.Cands
	}}
	e, err := engine.Open(context.Background(), engine.Config{
		Path: archtest.Golden(t).Path(t, guidedModels[0]), Backend: b, Numerics: ops.Exact, Threads: 2, Context: 160, Slots: 1, MaxRows: 48,
	})
	if err != nil {
		t.Fatal(err)
	}
	l.watcher = watcher{Model: appliance.FromEngine(e), bytes: read}
	s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Plugins: new(appliancetest.Plugins).Add(p, "", nil), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	s.Use(&l.watcher)
	temperature, seed, limit, topK := 0.8, int64(5), int64(16), int64(40)
	c, err := s.Start(context.Background(), &appliance.Request{
		ID: appliance.NewID(), Prompt: "The capital of the country", Temperature: &temperature, TopK: &topK, Seed: &seed, MaxTokens: &limit,
		Plugins: []appliance.PluginChoice{{Name: "look"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range r.Tokens {
		l.tokens = append(l.tokens, tok.ID)
	}
	return l
}

// TestPluginsSeeTheSameEverywhere: with the same request a plugin sees the same frames and
// the same tokens come on every backend, in exact mode, whether the row of logits was read
// or its statistics and best tokens alone; what a device is asked for is no more than that.
// Renderers pass for GPUs here, for of theirs the host reads the row.
func TestPluginsSeeTheSameEverywhere(t *testing.T) {
	processor, err := gpu.CPU()
	if err != nil {
		t.Fatal(err)
	}
	none := func() int64 { return 0 }
	want := look(t, processor, none, false)
	if len(want.tokens) == 0 || len(want.frames) < len(want.tokens) {
		t.Fatalf("%d tokens, %d frames", len(want.tokens), len(want.frames))
	}
	check := func(t *testing.T, b ops.Backend, read func() int64) {
		for _, full := range []bool{false, true} {
			got := look(t, b, read, full)
			if !slices.Equal(got.tokens, want.tokens) {
				t.Errorf("full %v: tokens %v, want %v", full, got.tokens, want.tokens)
			}
			if !slices.EqualFunc(got.frames, want.frames, bytes.Equal) {
				t.Errorf("full %v: the plugin saw something else", full)
			}
			vocab := got.Info().Vocab
			least := ops.Want{Kind: ops.WantTop, K: min(vocab, 256), Stats: true}
			bytes := int64(16 + 520 + 8*least.K)
			if full {
				least = ops.Want{Kind: ops.WantRow}
				bytes = int64(16 + 4*vocab)
			}
			if slices.ContainsFunc(got.reads, func(w ops.Want) bool { return w != least }) {
				t.Errorf("full %v: %+v was read, want %+v", full, got.reads, least)
			}
			if got.most != 0 && got.most != bytes {
				t.Errorf("full %v: a step read %d bytes, want %d", full, got.most, bytes)
			}
		}
	}
	check(t, processor, none)
	check(t, ref.New(), none)
	for api, open := range map[string]func() (device.Device, error){
		"vulkan": func() (device.Device, error) { return vulkan.Open(vulkan.Options{}) },
		"gl":     func() (device.Device, error) { return gl.Open(gl.Options{}) },
	} {
		t.Run(api, func(t *testing.T) {
			b := compute.New(devicetest.AsHardware(devicetest.Open(t, api, open)), compute.Options{Shared: true, Deadline: 5 * time.Minute})
			defer b.Close()
			check(t, b, func() int64 { return b.Stats().ReadBack })
		})
	}
}
