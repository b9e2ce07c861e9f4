package model

import "ganglion/gpu/ops"

// halves is global attention with rotation of halves, the file's scaling applied.
func halves(g *graph) attention {
	return attention{table: g.rope(ropeSpec{}), neox: true}
}

// pairs is global attention with rotation of pairs and the file's divisors.
func pairs(g *graph) attention {
	return attention{table: g.rope(ropeSpec{factors: true})}
}

// qwen2moe is Qwen1.5-MoE and Qwen2-MoE: qwen2 with experts whose weights are taken
// as the router gives them, and a shared expert behind a sigmoid gate.
func qwen2moe(g *graph) error {
	return experts(g, halves(g), func() moe {
		return moe{act: ops.SiLU, shared: g.sharedOr(g.ff[g.il]), sharedGate: true}
	})
}

// qwen3moe is Qwen3-MoE: qwen3 with experts, weights normalised.
func qwen3moe(g *graph) error { return experts(g, halves(g), normalised) }

// qwen3vlmoe is the language side of Qwen3-VL-MoE: qwen3moe with M-RoPE and Deepstack.
func qwen3vlmoe(g *graph) error {
	g.deepstack()
	return experts(g, attention{table: g.rope(ropeSpec{sections: interleaved}), neox: true}, normalised)
}

// normalised is the mixture without shared experts whose weights add up to one.
func normalised() moe { return moe{act: ops.SiLU, norm: true} }

// olmoe is OLMoE: Q/K norms over all heads together, weights as the router gives them.
func olmoe(g *graph) error {
	return experts(g, halves(g), func() moe { return moe{act: ops.SiLU} })
}

// minimaxM2 is MiniMax-M2: Q/K norms over all heads together, partial rotation, a
// gating function that the file must name, experts as wide as feed_forward_length and a
// bias for choosing.
func minimaxM2(g *graph) error {
	g.needGating()
	return experts(g, halves(g), func() moe {
		return moe{act: ops.SiLU, gating: g.gating(ops.RouteSigmoid), norm: true, ff: g.width()}
	})
}

// mellum is Mellum 2: qwen3moe whose local layers rotate without scaling.
func mellum(g *graph) error {
	local := g.sliding(attention{neox: true}, g.rope(ropeSpec{unstretched: true}))
	attn := g.alternating(g.local, 4, local, halves(g))
	g.head(g.decode(g.embed(1), attn, func(n ops.View) ops.View { return g.mixture(normalised(), n) }))
	return nil
}
