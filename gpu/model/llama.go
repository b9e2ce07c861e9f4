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
	for g.il = 0; g.il < g.blocks; g.il++ {
		h := g.attend(a, g.norm("attn_norm", x))
		g.outputs(&h, &x)
		x = g.Sum("attn_residual", g.linear("attn_output", h, g.embd), x)
		f := g.feedForward(ops.SiLU, g.norm("ffn_norm", x))
		x = g.Sum("ffn_residual", f, x)
	}
	g.head(x)
	return nil
}
