package pipeline_test

import (
	"bytes"
	"slices"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/sampling"
)

// looker is a plugin that at most cuts, after it has noted its frame, candidates included.
func looker(slot abi.Slot, h abi.Hook, candidates int, seen *[][]byte, do pipelinetest.Code) *pipelinetest.Plugin {
	p := in(slot, h, func(f *pipelinetest.Frame) abi.Action {
		*seen = append(*seen, bytes.Clone(f.B[:f.L.CandLogits+4*f.L.CandCap]))
		return do(f)
	})
	p.Manifest.Truncates = true
	p.Candidates, p.Edits = candidates, -1
	return p
}

func nothing(*pipelinetest.Frame) abi.Action { return 0 }

// cutTo keeps the first n candidates, worst first so that they must be sorted again.
func cutTo(n int) pipelinetest.Code {
	return func(f *pipelinetest.Frame) abi.Action {
		n := min(n, f.U(abi.OffCandN))
		for i := range n / 2 {
			a, x := f.Cand(i)
			b, y := f.Cand(n - 1 - i)
			f.SetCand(i, b, y)
			f.SetCand(n-1-i, a, x)
		}
		f.Put(abi.OffCandN, n)
		return abi.Cands
	}
}

func warm(f *pipelinetest.Frame) abi.Action { return f.Temperature(1.5) }

// spread makes logits of which the best lie close together.
func spread(tokens []int32) []float32 {
	row := make([]float32, vocab)
	for i := range row {
		x := uint32(i+len(tokens)*131) * 2654435761
		row[i] = float32(x>>12%4096)/512 - 3
	}
	return row
}

// peaked makes logits of which all but two weigh nothing.
func peaked(tokens []int32) []float32 {
	row := spread(tokens)
	for i := range row {
		if i%50 != 3 {
			row[i] -= 60
		}
	}
	return row
}

// TestLooksOnly: plugins that look at candidates and statistics, cut and set temperatures
// need no row, and nobody can tell whether there was one: frames and tokens are the same.
func TestLooksOnly(t *testing.T) {
	type plugins func(seen *[][]byte) []*pipelinetest.Plugin
	kinds := map[string]plugins{
		"looks": func(s *[][]byte) []*pipelinetest.Plugin {
			return one(looker(abi.SlotTruncate, abi.HookLogits, 20, s, nothing))
		},
		"cuts, warms, looks": func(s *[][]byte) []*pipelinetest.Plugin {
			return []*pipelinetest.Plugin{looker(abi.SlotBias, abi.HookLogits, 30, s, nothing), looker(abi.SlotTruncate, abi.HookLogits, 20, s, cutTo(11)),
				looker(abi.SlotTemperature, abi.HookLogits, 1, s, warm)}
		},
		"chooses": func(s *[][]byte) []*pipelinetest.Plugin {
			return one(looker(abi.SlotChoose, abi.HookChoose, 64, s, nothing))
		},
		"looks, chooses": func(s *[][]byte) []*pipelinetest.Plugin {
			return []*pipelinetest.Plugin{looker(abi.SlotTruncate, abi.HookLogits, 12, s, nothing), looker(abi.SlotChoose, abi.HookChoose, 64, s, nothing)}
		},
		"fails, looks": func(s *[][]byte) []*pipelinetest.Plugin {
			f := looker(abi.SlotBias, abi.HookLogits, 20, s, func(f *pipelinetest.Frame) abi.Action {
				f.Put(abi.OffCandN, 0)
				return abi.Cands | abi.Edits
			})
			f.OnError = pipeline.Skip
			return []*pipelinetest.Plugin{f, looker(abi.SlotTruncate, abi.HookLogits, 20, s, nothing)}
		},
	}
	settings := map[string]struct {
		set  setting
		rows bool // all steps need the row
	}{
		"greedy":        {func(*pipeline.Options, *sampling.Params) {}, false},
		"top_k":         {func(_ *pipeline.Options, p *sampling.Params) { p.Temperature, p.TopK = 0.7, 15 }, false},
		"top_k, warm":   {func(_ *pipeline.Options, p *sampling.Params) { p.Temperature, p.TopK = 1, 25 }, false},
		"from all":      {func(_ *pipeline.Options, p *sampling.Params) { p.Temperature = 1 }, true},
		"with a bias":   {func(_ *pipeline.Options, p *sampling.Params) { p.Bias = []sampling.Bias{{ID: 3, Value: -1}} }, true},
		"with a banned": {func(_ *pipeline.Options, p *sampling.Params) { p.Suppressed = []int32{5} }, true},
	}
	for kind, make := range kinds {
		for name, s := range settings {
			for shape, row := range map[string]func([]int32) []float32{"near": next, "spread": spread, "peaked": peaked} {
				run := func(whole bool) (frames [][]byte, tokens []int32, rows int) {
					x, err := begin(t, make(&frames), s.set)
					if err != nil {
						t.Fatal(err)
					}
					x.whole, x.row = whole, row
					tokens = x.finish(t)
					return frames, tokens, x.rows
				}
				frames, tokens, rows := run(false)
				wantFrames, wantTokens, all := run(true)
				if !slices.Equal(tokens, wantTokens) {
					t.Errorf("%s, %s, %s: tokens %v, with rows %v", kind, name, shape, tokens, wantTokens)
				}
				if len(frames) == 0 || !slices.EqualFunc(frames, wantFrames, bytes.Equal) {
					t.Errorf("%s, %s, %s: of %d frames some are others where rows are read", kind, name, shape, len(frames))
				}
				chooses := kind == "chooses" || kind == "looks, chooses"
				if want := s.rows || name == "greedy" && chooses; want && rows != all || !want && rows != 0 {
					t.Errorf("%s, %s, %s: %d of %d steps read a row", kind, name, shape, rows, all)
				}
			}
		}
	}
}

// TestLooksOnlyNot: what a plugin may do decides, not what it does.
func TestLooksOnlyNot(t *testing.T) {
	for name, change := range map[string]func(p *pipelinetest.Plugin){
		"looks":         func(*pipelinetest.Plugin) {},
		"edits":         func(p *pipelinetest.Plugin) { p.Edits = 1 },
		"masks":         func(p *pipelinetest.Plugin) { p.Mask = true },
		"takes the row": func(p *pipelinetest.Plugin) { p.Full = true },
		"gathers":       func(p *pipelinetest.Plugin) { p.Gather = []int32{3} },
		"plans":         func(p *pipelinetest.Plugin) { p.Hooks[abi.HookPlan] = nothing },
		"asks others":   func(p *pipelinetest.Plugin) { p.Manifest.Capabilities = []string{abi.CapAuxSeq} },
	} {
		var seen [][]byte
		p := looker(abi.SlotTruncate, abi.HookLogits, 20, &seen, nothing)
		change(p)
		x, _ := run(t, one(p))
		if (x.rows > 0) != (name != "looks") {
			t.Errorf("%s: %d rows were read", name, x.rows)
		}
	}
}
