package pipeline_test

import (
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/sampling"
)

// busy has every hook that a token meets.
func busy() []*pipelinetest.Plugin {
	p := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		f.Put(abi.OffCandN, f.U(abi.OffCandN)/2)
		return abi.Cands
	})
	p.Manifest.Truncates = true
	p.Manifest.View.History = abi.History{Kind: abi.HistoryAll}
	p.Manifest.View.Holdback = 4
	p.Hooks[abi.HookPlan] = func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, 99, abi.OpAdd, -1) }
	p.Hooks[abi.HookAccept] = func(f *pipelinetest.Frame) abi.Action { return 0 }
	p.Hooks[abi.HookText] = func(f *pipelinetest.Frame) abi.Action { return 0 }
	c, _ := counter(abi.DraftSnapshot)
	return []*pipelinetest.Plugin{p, c}
}

// TestNoAllocations: a token allocates nothing here once buffers have grown.
func TestNoAllocations(t *testing.T) {
	x, err := begin(t, busy(), func(o *pipeline.Options, _ *sampling.Params) { o.Max = 1 << 20 })
	if err != nil {
		t.Fatal(err)
	}
	row := next([]int32{10})
	piece := []byte("ab")
	in := &sampling.Input{Best: 11, Row: row}
	token := func() {
		if err := x.Plan(); err != nil {
			t.Fatal(err)
		}
		c, err := x.chain.Choose(in, 5, &x.scratch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Accept(c.ID); err != nil {
			t.Fatal(err)
		}
		if _, _, err := x.Text(piece, false); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		token()
	}
	if n := testing.AllocsPerRun(200, token); n > 0.5 { // the counter's own list grows
		t.Errorf("%.1f allocations a token", n)
	}
}
