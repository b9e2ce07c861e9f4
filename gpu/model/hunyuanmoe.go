package model

import "ganglion/gpu/ops"

// hyV3 is Hunyuan 3: layers have experts where they have a router, and a shared expert
// as wide as one of them unless the file says otherwise.
func hyV3(g *graph) error {
	a := attention{table: g.rope(ropeSpec{factors: true}), neox: true}
	ff := func(n ops.View) ops.View {
		m := g.listed(ops.RouteSigmoid)
		m.shared = g.sharedOr(g.expertFF[g.il])
		return g.routed(m, n)
	}
	g.head(g.decode(g.embed(1), func() attention { return a }, ff))
	return nil
}

// hunyuanMoE is Hunyuan-A13B: Q/K norms after the rotation, experts as wide as
// feed_forward_length, a shared expert in every layer.
func hunyuanMoE(g *graph) error {
	a := attention{table: g.rope(ropeSpec{factors: true}), neox: true, normLate: true}
	return experts(g, a, func() moe {
		return moe{act: ops.SiLU, norm: true, ff: g.width(), shared: g.sharedOr(g.width())}
	})
}
