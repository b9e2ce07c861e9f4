package engine_test

import (
	"testing"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// Tokens that were taken back leave no trace, and what is run again gives the bits of
// a sequence that never had them.
func TestTruncateGivesTheSameBits(t *testing.T) {
	e := open(t, "cpu", engine.Config{Path: tiny, Numerics: ops.Exact, Context: 96, Slots: 1})
	tokens := make([]int32, 50)
	for i := range tokens {
		tokens[i] = int32(3 + i*11%300)
	}
	want := allLogits(t, e, tokens, len(tokens))
	slot, _, _ := e.Acquire([]int32{-1, -1}, 0)
	defer e.Release(slot)
	run := func(ids []int32) []float32 {
		rows := make([]engine.Row, len(ids))
		for i, id := range ids {
			rows[i] = engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}}
		}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		var out []float32
		for _, h := range heads {
			out = append(out, h.Row...)
		}
		return out
	}
	run(tokens[:30])
	run([]int32{9, 9, 9, 9})
	if err := e.Mark(slot); err != nil {
		t.Fatal(err)
	}
	kept, err := e.Truncate(slot, 28)
	if err != nil || kept > 28 {
		t.Fatalf("kept %d, error %v", kept, err)
	}
	same(t, run(tokens[kept:]), want[kept*e.Info().Vocab:], "from position", kept)
	if _, err := e.Truncate(slot, 51); err == nil {
		t.Error("more tokens than there are were kept")
	}
}
