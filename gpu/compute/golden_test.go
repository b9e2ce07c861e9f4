package compute

import (
	"context"
	"math"
	"os"
	"slices"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// logitsOf runs a model's tokens in one batch and gives every row of logits.
func logitsOf(t *testing.T, b ops.Backend, path string, n ops.Numerics, tokens []int32) (out []float32) {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{Backend: b, Path: path, Numerics: n, Threads: 2, Context: 256, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	slot, _, _ := e.Acquire([]int32{-1, -1}, 0)
	var rows []engine.Row
	for _, id := range tokens {
		rows = append(rows, engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}})
	}
	heads, err := e.Run(rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		if h.Err != nil {
			t.Fatal(h.Err)
		}
		out = append(out, h.Row...)
	}
	return out
}

// nmse is Σ(a−b)²/Σb².
func nmse(got, want []float32) float64 {
	var d, s float64
	for i, w := range want {
		e := float64(got[i]) - float64(w)
		d += e * e
		s += float64(w) * float64(w)
	}
	return d / s
}

// inEveryDialect are the models that also run in the dialects of OpenGL: one for each
// kind of operation.
var inEveryDialect = []string{"gemma3-dense", "llama-dense", "llama-moe", "qwen3-dense"}

// Every architecture gives the processor's bits in exact mode, and the reference's logits
// within its bounds in both modes. GANGLION_GPU_ALL runs all models on every driver and
// in fast mode.
func TestArchitectures(t *testing.T) {
	set, all := archtest.Golden(t), os.Getenv("GANGLION_GPU_ALL") != ""
	exact := map[string][]float32{}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			b := New(d.device(t), Options{Shared: true})
			defer b.Close()
			for _, entry := range set.Entries {
				chosen := slices.Contains(inEveryDialect, entry.Name)
				if !all && !chosen && (d.name != "vulkan" || raceDetector) {
					continue
				}
				t.Run(entry.Name, func(t *testing.T) {
					path := set.Path(t, entry.Name)
					if exact[entry.Name] == nil {
						c, err := cpu.New(cpu.Options{})
						if err != nil {
							t.Fatal(err)
						}
						defer c.Close()
						exact[entry.Name] = logitsOf(t, c, path, ops.Exact, set.Tokens)
					}
					got := logitsOf(t, b, path, ops.Exact, set.Tokens)
					for i, w := range exact[entry.Name] {
						if math.Float32bits(got[i]) != math.Float32bits(w) {
							t.Fatalf("exact mode: logit %d is %v, the processor has %v", i, got[i], w)
						}
					}
					if e := nmse(got, set.Want(t, entry)); !(e <= entry.MaxExact) {
						t.Errorf("exact mode: NMSE %.3g, bound %.3g", e, entry.MaxExact)
					}
					if !all && !chosen {
						return
					}
					got = logitsOf(t, b, path, ops.Fast, set.Tokens)
					if e := nmse(got, set.Want(t, entry)); !(e <= entry.MaxFast) {
						t.Errorf("fast mode: NMSE %.3g, bound %.3g", e, entry.MaxFast)
					}
				})
			}
		})
	}
}
