package pipeline_test

import (
	"testing"
	"time"

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

// TestNoAllocations: a token allocates nothing here once buffers have grown, whether it is
// drawn or the likeliest one.
func TestNoAllocations(t *testing.T) {
	for _, temperature := range []float64{0, 1, 1.5} {
		noAllocations(t, temperature)
	}
}

func noAllocations(t *testing.T, temperature float64) {
	t.Helper()
	x, err := begin(t, busy(), func(o *pipeline.Options, p *sampling.Params) { o.Max, p.Temperature = 1<<20, temperature })
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
		t.Errorf("temperature %g: %.1f allocations a token", temperature, n)
	}
}

// BenchmarkStep is a step with no plugin, and with one that sees 256 candidates and takes
// none out: the difference is what the host adds to a token for a plugin, but for the
// call into a guest; cut is one that keeps eight, so that what that did to the token is told. What plugins share, statistics and candidates and their mass, is made in
// both. min-ns is the best step, mean-ns that of all.
func BenchmarkStep(b *testing.B) {
	const size = 1000
	row := make([]float32, size)
	for i := range row {
		row[i] = -float32(i*7919%size) / 50
	}
	cuts := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		f.Put(abi.OffCandN, 8)
		return abi.Cands
	})
	cuts.Manifest.Truncates = true
	looks := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action { return 0 })
	for _, bench := range []struct {
		name        string
		plugins     []*pipelinetest.Plugin
		temperature float64
	}{{"none", nil, 0}, {"view", one(looks), 0}, {"none drawn", nil, 1}, {"view drawn", one(looks), 1}, {"cut drawn", one(cuts), 1}} {
		b.Run(bench.name, func(b *testing.B) {
			p, err := pipeline.New(pipeline.Options{
				Plugins: pipelinetest.Specs(size, bench.plugins...), Vocab: size, Seed: 7, Max: 1 << 30, Now: time.Now, Temperature: bench.temperature,
				Warn: func(e *pipeline.Error) { b.Fatal(e) },
			})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			chain, err := sampling.New(sampling.Params{Vocab: size, TopP: 1, Plugins: p, Temperature: bench.temperature})
			if err != nil {
				b.Fatal(err)
			}
			p.Begin([]int32{10})
			looker := &looked{Plugins: p}
			watched, err := sampling.New(sampling.Params{Vocab: size, TopP: 1, Plugins: looker, Temperature: bench.temperature})
			if err != nil {
				b.Fatal(err)
			}
			chosen := chain
			if len(bench.plugins) == 0 {
				chosen = watched // statistics and candidates are made without the plugin too
			}
			var s sampling.Scratch
			input := &sampling.Input{Row: row, Max: row[0]}
			least := time.Duration(1 << 62)
			b.ReportAllocs()
			for b.Loop() {
				begin := time.Now()
				if err := p.Plan(); err != nil {
					b.Fatal(err)
				}
				if _, err := chosen.Choose(input, 5, &s); err != nil {
					b.Fatal(err)
				}
				least = min(least, time.Since(begin))
			}
			b.ReportMetric(float64(least.Nanoseconds()), "min-ns/step")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "mean-ns/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// looked has the statistics and the candidates of a step made as a plugin's view needs
// them, and runs no plugin.
type looked struct{ sampling.Plugins }

func (*looked) Needs(int) sampling.Needs { return sampling.Needs{View: sampling.Row} }

func (*looked) Late(d *sampling.Distribution, t float64) (float64, error) {
	d.Stats()
	d.Share(256) // of the Top 256
	return t, nil
}
