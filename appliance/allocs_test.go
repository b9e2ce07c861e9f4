package appliance_test

import (
	"runtime"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
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

// TestAuxiliaryAllocations bounds what an auxiliary sequence adds to a token: nothing but
// the row that the double makes.
func TestAuxiliaryAllocations(t *testing.T) {
	per := func(beside bool) float64 {
		var open appliance.PluginOpen
		p := &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "beside", Slot: abi.SlotBias, Capabilities: []string{abi.CapAuxSeq}}}
		p.New = func() map[abi.Hook]pipelinetest.Code {
			own := open.Sequences
			return map[abi.Hook]pipelinetest.Code{
				abi.HookPrompt: func(f *frame) abi.Action {
					if beside {
						if _, err := own.Open([]int32{'y'}); err != nil {
							t.Error(err)
						}
					}
					return 0
				},
				abi.HookLogits: func(f *frame) abi.Action {
					if s, ok := own.Stats(1); ok != beside || beside && (s.Finite == 0 || own.Row(1) == nil) {
						t.Error("the logits are not as they should be")
					}
					return 0
				},
			}
		}
		b, all := with(t, endlessModel(), appliance.Config{Speculate: appliance.SpeculateOff})
		all.Add(p, "", func(o appliance.PluginOpen) { open = o })
		ctx := within(t)
		count := func(tokens int64) float64 {
			return testing.AllocsPerRun(5, func() {
				c, err := b.Start(ctx, asking("x", tokens, "beside"))
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
		return (many - few) / 1000
	}
	if without, with := per(false), per(true); with-without > 1.1 {
		t.Errorf("%.2f allocations per token, %.2f without an auxiliary sequence", with, without)
	}
}
