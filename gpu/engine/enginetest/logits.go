// Package enginetest runs models for the tests of backends. It is imported by tests only.
package enginetest

import (
	"context"
	"slices"
	"testing"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// Logits runs a model's tokens on a backend, in so many batches one after another, and
// gives every row of logits. The backend stays open.
func Logits(t testing.TB, b ops.Backend, path string, n ops.Numerics, tokens []int32, batches int) (out []float32) {
	t.Helper()
	for _, h := range Heads(t, b, path, n, tokens, batches) {
		out = append(out, h.Row...)
	}
	return out
}

// Heads runs a model's tokens as Logits does and gives every row's head with its logits.
func Heads(t testing.TB, b ops.Backend, path string, n ops.Numerics, tokens []int32, batches int) (out []ops.Head) {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{Backend: b, Path: path, Numerics: n, Threads: 2, Context: 256, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	slot, _, _ := e.Acquire([]int32{-1, -1}, 0) // tokens that no prompt begins with
	for i := range batches {
		var rows []engine.Row
		for _, id := range tokens[len(tokens)*i/batches : len(tokens)*(i+1)/batches] {
			rows = append(rows, engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}})
		}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range heads {
			if h.Err != nil {
				t.Fatal(h.Err)
			}
			h.Row = slices.Clone(h.Row) // heads are valid until the next run
			out = append(out, h)
		}
	}
	return out
}
