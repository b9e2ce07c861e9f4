package model

import "ganglion/gpu/ops"

// llama is Llama 1 to 3.x and everything shaped like it (TinyLlama, SmolLM2,
// Mistral; Mixtral with a router): pre-norms, rotation of pairs, SiLU gate.
func llama(g *graph) error { return plain(g, false) }

// qwen2 is Qwen2 and Qwen2.5: as llama with rotation of halves and biases on
// q, k, v (taken by presence).
func qwen2(g *graph) error { return plain(g, true) }

// qwen3 is Qwen3: as qwen2 without biases, with RMSNorm on every head of q and k
// before the rotation (both taken by presence).
func qwen3(g *graph) error { return plain(g, true) }

// plain is the pre-norm decoder these families share.
func plain(g *graph, neox bool) error {
	x := g.embed(1)
	a := attention{table: g.ropeTable(g.ropeBase, true), neox: neox}
	g.head(g.decode(x, func() attention { return a }, func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) }))
	return nil
}
