package pipeline_test

import (
	"math"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/sampling"
)

// gathered are the logits that a plugin got of the tokens that it named.
func gathered(f *pipelinetest.Frame) (out []float32) {
	for i := range f.L.GatherN {
		out = append(out, f.F(f.L.GatherLogits+4*i))
	}
	return out
}

// TestGather: a plugin gets the logits of the tokens that it named, in its order, wherever
// they stand among the candidates; −Inf of those that are out, and in choose what is left
// after temperature and filters. The rows of different steps differ, so that what is left
// of the step before is seen.
func TestGather(t *testing.T) {
	ids := []int32{99, 0, 14, 14, 57}
	out := float32(math.Inf(-1))
	var logits, choices [][]float32
	ban := in(abi.SlotConstrain, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, 57, abi.OpBan, 0) })
	look := &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "look", Slot: abi.SlotChoose}, Gather: ids, Candidates: -1, Edits: -1}
	look.Hooks = map[abi.Hook]pipelinetest.Code{
		abi.HookLogits: func(f *pipelinetest.Frame) abi.Action { logits = append(logits, gathered(f)); return 0 },
		abi.HookChoose: func(f *pipelinetest.Frame) abi.Action { choices = append(choices, gathered(f)); return 0 },
	}
	x, err := begin(t, []*pipelinetest.Plugin{ban, look}, func(o *pipeline.Options, p *sampling.Params) { p.Temperature, p.TopK = 2, 90 })
	if err != nil {
		t.Fatal(err)
	}
	x.row = spread
	tokens := x.finish(t)
	if len(logits) != len(tokens) || len(choices) != len(tokens) {
		t.Fatalf("%d and %d looks at %d tokens", len(logits), len(choices), len(tokens))
	}
	cut := 0
	for step := range tokens {
		row := spread(x.tokens[:1+step])
		row[57] = out
		for k, id := range ids {
			if got := logits[step][k]; got != row[id] {
				t.Errorf("step %d: token %d has logit %g, want %g", step, id, got, row[id])
			}
			want, better := row[id]/2, 0
			for _, l := range row {
				if l > row[id] {
					better++
				}
			}
			if better >= 90 && row[id] != out {
				want = out
				cut++
			}
			if got := choices[step][k]; got != want {
				t.Errorf("step %d: token %d chosen from has logit %g, want %g", step, id, got, want)
			}
		}
	}
	if cut == 0 {
		t.Error("top_k cut none of the tokens: the test sees nothing")
	}
	// The partner: without gather there is nothing in the frame.
	look.Gather, logits, choices = nil, nil, nil
	if run(t, one(look)); len(logits[0]) != 0 {
		t.Errorf("%v without asking", logits[0])
	}
}
