// Package enginetest runs models for the tests of backends. It is imported by tests only.
package enginetest

import (
	"context"
	"testing"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// Logits runs a model's tokens on a backend, in so many batches one after another, and
// gives every row of logits. The backend stays open.
func Logits(t testing.TB, b ops.Backend, path string, n ops.Numerics, tokens []int32, batches int) (out []float32) {
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
			out = append(out, h.Row...)
		}
	}
	return out
}
