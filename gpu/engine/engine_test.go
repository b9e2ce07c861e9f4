package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/gpu/engine"
	"ganglion/gpu/model"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

const tiny = "testdata/arch/gemma3-dense.gguf"

func TestOpenRefusesWhatDoesNotFit(t *testing.T) {
	tests := []struct {
		name string
		free int64
		ok   bool
	}{{"plenty", 1 << 40, true}, {"unknown", 0, true}, {"too little", 1 << 16, false}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := engine.Open(context.Background(), engine.Config{Path: tiny, Backend: ref.New(), Available: func() int64 { return tt.free }})
			if tt.ok != (err == nil) {
				t.Fatalf("error %v, want success %v", err, tt.ok)
			}
			if !tt.ok {
				if !errors.Is(err, engine.ErrTooLarge) || !strings.Contains(err.Error(), "MiB") {
					t.Errorf("error %v, want ErrTooLarge with both numbers", err)
				}
				return
			}
			e.Close()
		})
	}
}

func TestOpenStopsWhenTheContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := engine.Open(ctx, engine.Config{Path: tiny, Backend: ref.New()}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestKVMemoryIsWhatThePlanSays(t *testing.T) {
	for name := range backends {
		t.Run(name, func(t *testing.T) {
			e := open(t, name, engine.Config{Path: tiny, Context: 96, Slots: 3, MaxRows: 16})
			// gemma3-dense: every cache is sized by Plan.KVBytes, nothing else.
			if got, want := e.Info().KVBytes, e.Forecast().KV; got != want {
				t.Errorf("KV cache of %d bytes, the plan says %d", got, want)
			}
		})
	}
}

func TestUnknownArchitectureIsNamed(t *testing.T) {
	b, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "foo.gguf")
	changed := strings.Replace(string(b), "gemma3", "gemmaX", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = engine.Open(context.Background(), engine.Config{Path: path, Backend: ref.New()})
	if err == nil || !strings.Contains(err.Error(), "gemmaX") {
		t.Fatalf("error %v, want one that names gemmaX", err)
	}
	for _, known := range model.Architectures() {
		if errors.Is(err, model.ErrUnknown) && !strings.Contains(err.Error(), known) {
			t.Errorf("error %v does not list %s", err, known)
		}
	}
}

// A run that the backend refuses leaves the engine usable and its slots clean.
func TestFailedRunResetsItsSlots(t *testing.T) {
	e := open(t, "ref", engine.Config{Path: tiny, Context: 64, Slots: 1})
	slot, _, _ := e.Acquire([]int32{1, 2}, 0)
	if _, err := e.Run([]engine.Row{{Slot: slot, Token: int32(e.Info().Vocab)}}); err == nil {
		t.Fatal("a token outside the vocabulary was run")
	}
	heads, err := e.Run([]engine.Row{{Slot: slot, Token: 1, Want: true, Read: ops.Want{Kind: ops.WantBest}}})
	if err != nil || len(heads) != 1 {
		t.Fatalf("after a failed run: %d heads, error %v", len(heads), err)
	}
	e.Release(slot)
	if _, cached, _ := e.Acquire([]int32{1, 5}, 0); cached != 1 {
		t.Errorf("cached %d tokens, want the one that ran", cached)
	}
}

// What a warm slot gives equals what a cold one gives, bit for bit.
func TestWarmPrefixGivesTheSameBits(t *testing.T) {
	for _, numerics := range []ops.Numerics{ops.Exact, ops.Fast} {
		e := open(t, "cpu", engine.Config{Path: tiny, Numerics: numerics, Threads: 2, Context: 128, Slots: 1})
		prompt := make([]int32, 60)
		for i := range prompt {
			prompt[i] = int32(3 + i*7%300)
		}
		run := func() ([]float32, int) {
			slot, cached, _ := e.Acquire(prompt, 0)
			defer e.Release(slot)
			var rows []engine.Row
			for i := cached; i < len(prompt); i++ {
				rows = append(rows, engine.Row{Slot: slot, Token: prompt[i], Want: i == len(prompt)-1, Read: ops.Want{Kind: ops.WantRow}})
			}
			heads, err := e.Run(rows)
			if err != nil {
				t.Fatal(err)
			}
			return append([]float32(nil), heads[0].Row...), cached
		}
		cold, n := run()
		if n != 0 {
			t.Fatalf("cold run found %d cached tokens", n)
		}
		warm, n := run()
		if n != len(prompt)-1 {
			t.Fatalf("warm run found %d cached tokens, want %d", n, len(prompt)-1)
		}
		same(t, warm, cold, "warm "+numerics.String(), n)
	}
}

// The decode loop allocates nothing per token.
func TestDecodeAllocatesNothing(t *testing.T) {
	for _, read := range []ops.Want{{Kind: ops.WantBest}, {Kind: ops.WantTop, K: 40}, {Kind: ops.WantRow}} {
		e := open(t, "cpu", engine.Config{Path: tiny, Threads: 2, Context: 256, Slots: 1})
		slot, _, _ := e.Acquire([]int32{1, 2}, 0)
		allocatesNothing(t, e, slot, read)
	}
}

// allocatesNothing decodes greedily in a slot and counts allocations.
func allocatesNothing(t *testing.T, e *engine.Engine, slot int, read ops.Want) {
	t.Helper()
	rows := []engine.Row{{Slot: slot, Token: 1, Want: true, Read: read}}
	step := func() {
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		rows[0].Token = heads[0].Best
	}
	step() // compiles the program
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations per token with %+v", n, read)
	}
}
