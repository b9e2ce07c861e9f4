package engine_test

import (
	"math"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/engine"
	"ganglion/gpu/gguf"
	"ganglion/gpu/model"
	"ganglion/gpu/ops"
)

// recurrentModels are the golden models whose plan has recurrent state.
func recurrentModels(t *testing.T, set *archtest.Set) (names []string) {
	t.Helper()
	for _, e := range set.Entries {
		f, err := gguf.Open(set.Path(t, e.Name))
		if err != nil {
			t.Fatal(err)
		}
		p, err := model.New(f, model.Options{})
		if err == nil && len(p.States) > 0 {
			names = append(names, e.Name)
		}
		f.Close()
	}
	return names
}

// stateRuns are the backends and modes in which recurrent state must hold.
var stateRuns = []struct {
	backend  string
	numerics ops.Numerics
}{{"ref", ops.Exact}, {"cpu", ops.Exact}, {"cpu", ops.Fast}}

// Recurrent state gives the same bits however a prompt is cut, and after it was saved,
// run on and loaded again.
func TestRecurrentStateGivesTheSameBits(t *testing.T) {
	set := archtest.Golden(t)
	names := recurrentModels(t, set)
	if len(names) < 13 && set.Find(t, "mamba-dense").Name != "" {
		t.Errorf("%d golden models have recurrent state, want at least 13: %v", len(names), names)
	}
	for _, name := range names {
		for _, run := range stateRuns {
			t.Run(name+"/"+run.backend+"/"+run.numerics.String(), func(t *testing.T) {
				e := open(t, run.backend, engine.Config{Path: set.Path(t, name), Numerics: run.numerics, Threads: 2, Context: 256, Slots: 1})
				whole := allLogits(t, e, set.Tokens, len(set.Tokens))
				for _, chunk := range []int{1, 2, 7, 16} {
					same(t, allLogits(t, e, set.Tokens, chunk), whole, "chunk", chunk)
				}
				for _, at := range []int{1, 2, 19, 39} {
					same(t, restored(t, e, set.Tokens, at), whole[at*set.Vocab:], "restored after token", at)
				}
			})
		}
	}
}

// restored are the logits from token at on, when the state after at tokens was kept,
// others were run behind it and the state was brought back.
func restored(t *testing.T, e *engine.Engine, tokens []int32, at int) []float32 {
	t.Helper()
	slot, _, ok := e.Acquire([]int32{-1, -1}, 0)
	if !ok {
		t.Fatal("no free slot")
	}
	defer e.Release(slot)
	runTokens(t, e, slot, tokens[:at])
	if err := e.Mark(slot); err != nil {
		t.Fatal(err)
	}
	runTokens(t, e, slot, []int32{7, 11, 13, 17, 19})
	kept, err := e.Truncate(slot, at)
	if err != nil || kept != at {
		t.Fatalf("kept %d of %d tokens, error %v", kept, at, err)
	}
	return runTokens(t, e, slot, tokens[at:])
}

func runTokens(t *testing.T, e *engine.Engine, slot int, tokens []int32) (out []float32) {
	t.Helper()
	rows := make([]engine.Row, len(tokens))
	for i, id := range tokens {
		rows[i] = engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}}
	}
	heads, err := e.Run(rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		out = append(out, h.Row...)
	}
	return out
}

// The partner of the test above: state that another beginning has left behind shows in
// the logits, so that one which is not brought back would be seen.
func TestRecurrentStateShowsInLogits(t *testing.T) {
	set := archtest.Golden(t)
	for _, name := range recurrentModels(t, set) {
		t.Run(name, func(t *testing.T) {
			e := open(t, "cpu", engine.Config{Path: set.Path(t, name), Numerics: ops.Exact, Threads: 2, Context: 256, Slots: 1})
			whole := allLogits(t, e, set.Tokens, len(set.Tokens))
			other := append([]int32(nil), set.Tokens...)
			other[18] = (other[18] + 5) % 300
			got := allLogits(t, e, other, len(other))
			differs := false
			for i, x := range got[19*set.Vocab : 20*set.Vocab] {
				differs = differs || math.Float32bits(x) != math.Float32bits(whole[19*set.Vocab+i])
			}
			if !differs {
				t.Error("the token before leaves no trace")
			}
		})
	}
}
