package appliance_test

import (
	"runtime"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

// TestDecodeAllocations bounds what one more token costs: the chunk's text, and what
// the growth of the token list comes to. The scheduler, the chain and the text flow
// allocate nothing.
func TestDecodeAllocations(t *testing.T) {
	b := endless(t, appliancetest.Options{})
	ctx := within(t)
	count := func(tokens int64) float64 {
		return testing.AllocsPerRun(5, func() {
			c, err := b.Start(ctx, &appliance.Request{ID: appliance.NewID(), Prompt: "x", MaxTokens: &tokens, Temperature: ptr(0.0)})
			if err != nil {
				t.Fatal(err)
			}
			for {
				if _, err := c.Next(ctx); err != nil {
					break
				}
			}
		})
	}
	runtime.GC()
	few, many := count(100), count(1100)
	if per := (many - few) / 1000; per > 1.2 {
		t.Errorf("%.2f allocations per token, want the text of its chunk and little more", per)
	}
}

// TestGuessingAllocations bounds what a token costs that was guessed: no more than one
// that was not.
func TestGuessingAllocations(t *testing.T) {
	piece := []string{"a", "b", "c"}
	open := func() appliance.Model {
		return appliancetest.NewScripted(appliancetest.Script{Pieces: piece, Endless: true}, appliancetest.Options{})
	}
	for _, from := range []appliance.Speculation{appliance.SpeculateLookup, appliance.SpeculateDraft} {
		b := guessing(t, withDraft(t, open(), open()), from)
		ctx := within(t)
		count := func(tokens int64) float64 {
			return testing.AllocsPerRun(5, func() {
				c, err := b.Start(ctx, greedy("x", tokens))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Wait(ctx); err != nil {
					t.Fatal(err)
				}
			})
		}
		runtime.GC()
		few, many := count(100), count(1100)
		if per := (many - few) / 1000; per > 1.2 {
			t.Errorf("%s: %.2f allocations per token", from, per)
		}
	}
}
