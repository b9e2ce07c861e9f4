package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// loraManifest is testdata/lora/manifest.json.
type loraManifest struct {
	Entries []struct {
		Name, Model, Logits string
		Adapters            []struct {
			File  string
			Scale float32
		}
	}
}

// readFloats reads little-endian float32 values.
func readFloats(t testing.TB, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(b)/4)
	if err := tensor.Dequantize(tensor.F32, out, b); err != nil {
		t.Fatal(err)
	}
	return out
}

// Adapters do what the reference does with the same files: factors of either float
// type, an alpha of 0, token embeddings and head, stacks of experts, fused matrices,
// two at once.
func TestAdaptersLikeTheReference(t *testing.T) {
	set := archtest.Golden(t)
	var m loraManifest
	const dir = "testdata/lora"
	readJSON(t, filepath.Join(dir, "manifest.json"), &m)
	if len(m.Entries) < 5 {
		t.Fatalf("the manifest has %d entries", len(m.Entries))
	}
	for _, entry := range m.Entries {
		arch := set.Find(t, entry.Model)
		want := readFloats(t, filepath.Join(dir, entry.Logits))
		var adapters []engine.AdapterFile
		var scales, off []engine.AdapterScale
		for i, a := range entry.Adapters {
			adapters = append(adapters, engine.AdapterFile{Path: filepath.Join(dir, a.File)})
			scales = append(scales, engine.AdapterScale{ID: i, Scale: a.Scale})
			off = append(off, engine.AdapterScale{ID: i, Scale: a.Scale * 1.25})
		}
		for _, run := range runs {
			t.Run(entry.Name+"/"+run.backend+"/"+run.numerics.String(), func(t *testing.T) {
				bound := arch.MaxExact
				if run.numerics == ops.Fast {
					bound = arch.MaxFast
				}
				e := open(t, run.backend, engine.Config{Path: set.Path(t, entry.Model), Adapters: adapters, Numerics: run.numerics, Threads: 2})
				got := adapted(t, e, set.Tokens, len(set.Tokens), scales...)
				if d := archtest.NMSE(got, want); !(d <= bound) {
					t.Errorf("NMSE %.3g, bound %.3g", d, bound)
				} else {
					t.Logf("NMSE %.3g, bound %.3g", d, bound)
				}
				// The partner: strengths that are off by a quarter are seen.
				if d := archtest.NMSE(adapted(t, e, set.Tokens, len(set.Tokens), off...), want); d <= bound {
					t.Errorf("NMSE %.3g with strengths a quarter off, want more than %.3g", d, bound)
				}
			})
		}
	}
}
