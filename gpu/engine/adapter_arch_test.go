package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/engine"
	"ganglion/gpu/model"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// An adapter of all that can be adapted does what merging does, in every architecture:
// what a plan multiplies by in another way than LowRank knows is refused by name and
// never half applied.
func TestAdaptersOfEveryArchitecture(t *testing.T) {
	set := archtest.Golden(t)
	known := model.Architectures()
	for _, entry := range set.Entries {
		if !slices.Contains(known, entry.Arch) {
			continue
		}
		t.Run(entry.Name, func(t *testing.T) {
			base := set.Path(t, entry.Name)
			l, refused := adaptable(t, base)
			t.Logf("%d weights adapted, refused: %v", len(l.pairs), refused)
			e := open(t, "cpu", engine.Config{Path: base, Adapters: files(l), Numerics: ops.Exact, Threads: 2})
			got := adapted(t, e, set.Tokens, len(set.Tokens), engine.AdapterScale{Scale: 0.5})
			whole := merged(t, base, []lora{l}, []float64{0.5})
			want := allLogits(t, open(t, "cpu", engine.Config{Path: whole, Numerics: ops.Exact, Threads: 2}), set.Tokens, len(set.Tokens))
			if d := archtest.NMSE(got, want); !(d <= entry.MaxExact) {
				t.Errorf("NMSE %.3g against merged weights, bound %.3g", d, entry.MaxExact)
			}
		})
	}
}

// adaptable makes an adapter of all weights that the model can adapt.
func adaptable(t *testing.T, base string) (l lora, refused []string) {
	t.Helper()
	for range 200 {
		l = newLoRA(t, base, 5, 2, tensor.F32, func(name string) bool { return !slices.Contains(refused, name) })
		b := backends["ref"](t)
		e, err := engine.Open(context.Background(), engine.Config{Path: base, Adapters: files(l), Backend: b})
		if err == nil {
			e.Close()
			return l, refused
		}
		_, rest, ok := strings.Cut(err.Error(), `adapter "a": tensor "`)
		name, _, ok2 := strings.Cut(rest, ".lora_")
		if !ok || !ok2 || slices.Contains(refused, name) {
			t.Fatalf("error %v names no tensor of the adapter", err)
		}
		refused = append(refused, name)
	}
	t.Fatalf("refused %v", refused)
	return l, nil
}
