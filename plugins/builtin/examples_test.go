package builtin

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ganglion/plugins/sdk"
)

// TestExamplesAgree: the SDKs' example does the same in every language, and what its
// formula says.
func TestExamplesAgree(t *testing.T) {
	for _, lang := range sdk.Languages() {
		t.Run(lang, func(t *testing.T) {
			file, err := sdk.Build(context.Background(), "../sdk/"+lang+"/example")
			if errors.Is(err, sdk.ErrNoToolchain) && !required() {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, answer := openedFile(t, file, settings{"a": 0}, of()); answer != 1 {
				t.Errorf("switched off: gg_open returns %d", answer)
			}
			g, answer := openedFile(t, file, settings{"a": 0.3}, of())
			if answer != 0 {
				t.Fatalf("gg_open returns %d: %s", answer, g.fault)
			}
			r := rand.New(rand.NewPCG(9, 10))
			for round := range 20 {
				logits := make(row, 1+r.IntN(200))
				for i := range logits {
					logits[i] = float32(r.NormFloat64() * 3)
				}
				sum, best := 0.0, math.Inf(-1)
				for _, l := range logits {
					sum += math.Exp(float64(l))
					best = max(best, float64(l))
				}
				var want []uint32
				top := math.Exp(best) / sum
				for i, l := range logits {
					if p := math.Exp(float64(l)) / sum; p >= 0.3*top*top || float64(l) == best {
						want = append(want, uint32(i))
					}
				}
				if got := survivors(g, logits); !slices.Equal(got, want) {
					t.Fatalf("round %d: %d tokens stay, want %d", round, len(got), len(want))
				}
			}
		})
	}
}
