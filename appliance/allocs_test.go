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
