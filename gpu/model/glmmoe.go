package model

import "ganglion/gpu/ops"

// glm4MoE is GLM-4.5 to 4.7: partial rotation, Q/K norms by presence, the norm before
// the feed-forward network under the name post_attention_norm, a bias for choosing,
// shared experts as one wide expert, leading dense layers.
func glm4MoE(g *graph) error {
	a := halves(g)
	if g.mrope() {
		a.table = g.rope(ropeSpec{sections: contiguous})
	}
	ff := func(n ops.View) ops.View {
		m := g.listed(ops.RouteSigmoid)
		m.shared = g.expertFF[g.il] * g.sharedCount
		return g.sparse(m, n)
	}
	g.head(g.layers(g.embed(1), func() layer {
		return layer{attn: a, ff: ff, attnNorm: "attn_norm", ffNorm: "post_attention_norm"}
	}))
	return nil
}

// exaoneMoE is K-EXAONE: three local layers to one global, rotation on the local ones
// alone, Q/K norms, one shared expert, a gating function that the file must name.
func exaoneMoE(g *graph) error {
	g.needGating()
	g.needWindow()
	local := g.sliding(attention{neox: true}, g.rope(ropeSpec{factors: true}))
	attn := g.alternating(g.local, 4, local, attention{table: -1})
	ff := func(n ops.View) ops.View {
		m := g.listed(ops.RouteSigmoid)
		m.shared = g.sharedOr(g.expertFF[g.il])
		return g.sparse(m, n)
	}
	g.head(g.decode(g.embed(1), attn, ff))
	return nil
}
