package model

import "ganglion/gpu/ops"

// dbrx is DBRX: LayerNorm without bias, q, k and v limited, experts as wide as
// feed_forward_length.
func dbrx(g *graph) error {
	g.kind = layerNorm
	a := halves(g)
	a.clamp = g.keys.need("attention.clamp_kqv")
	l := layer{attn: a, attnNorm: "attn_norm", ffNorm: "attn_output_norm", ff: func(n ops.View) ops.View {
		return g.mixture(moe{act: ops.SiLU, norm: true, ff: g.width()}, n)
	}}
	g.head(g.layers(g.embed(1), func() layer { return l }))
	return nil
}

// phiMoE is Phi-3.5-MoE: RMSNorm with a bias, LongRoPE, biases everywhere.
func phiMoE(g *graph) error {
	a := attention{table: g.rope(ropeSpec{factors: true}), neox: true, early: true}
	return experts(g, a, func() moe { return moe{act: ops.SiLU, norm: true, ff: g.width()} })
}

// ernie45MoE is ERNIE 4.5 with experts: every interleave_moe_layer_step-th layer after
// the leading dense ones has them, softmax with a bias for choosing, and a shared expert
// where the file gives its width.
func ernie45MoE(g *graph) error {
	if g.moeStep < 1 {
		g.fail("key %q is missing or 0", g.key("interleave_moe_layer_step"))
		return nil
	}
	g.unbiased = []string{"attn_output"}
	a := attention{table: g.rope(ropeSpec{})}
	ff := func(n ops.View) ops.View {
		if (g.il+1)%g.moeStep != 0 {
			return g.glu(ops.SiLU, g.width(), n)
		}
		return g.sparse(moe{act: ops.SiLU, norm: true, shared: g.sharedFF}, n)
	}
	g.head(g.decode(g.embed(1), func() attention { return a }, ff))
	return nil
}
