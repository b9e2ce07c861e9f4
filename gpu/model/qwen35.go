package model

import "ganglion/gpu/ops"

// qwen35 is Qwen3.5 to 3.8: three layers of Gated DeltaNet to one of attention, whose
// output is gated by a part of attn_q; post_attention_norm stands before the
// feed-forward.
func qwen35(g *graph) error {
	a := attention{table: g.rope(ropeSpec{sections: interleaved}), neox: true}
	return deltaHybrid(g, a, false, func(n ops.View) ops.View { return g.glu(ops.SiLU, g.width(), n) })
}

// qwen35moe is the same with experts and a gated shared expert.
func qwen35moe(g *graph) error {
	a := attention{table: g.rope(ropeSpec{sections: interleaved}), neox: true}
	return deltaHybrid(g, a, false, g.gatedMixture)
}

// qwen3next is Qwen3-Next: qwen35moe with plain rotation, value heads in their original
// order and, in older files, fused projections.
func qwen3next(g *graph) error { return deltaHybrid(g, halves(g), true, g.gatedMixture) }

// gatedMixture is a normalised mixture with a gated shared expert.
func (g *graph) gatedMixture(n ops.View) ops.View {
	return g.mixture(moe{act: ops.SiLU, norm: true, shared: g.sharedOr(g.ff[g.il]), sharedGate: true}, n)
}

func deltaHybrid(g *graph, a attention, interleaved bool, ff func(ops.View) ops.View) error {
	const interval = 4
	s := g.readStateSpace(true)
	if s.rank%s.groups != 0 || s.inner != s.rank*s.state {
		g.fail("keys %q: %d channels, %d value heads of %d, %d key heads", g.key("ssm.*"), s.inner, s.rank, s.state, s.groups)
		s.rank, s.groups = 1, 1
	}
	recurrent := g.recurrentLayers(interval)
	a.qkNorm, a.queryGate = qkRequired, true
	g.head(g.layers(g.embed(1), func() layer {
		l := preNorm(a, ff)
		l.ffNorm = "post_attention_norm"
		if recurrent[g.il] {
			l.mix, l.out = func(n ops.View) ops.View { return g.deltaNet(s, interleaved, n) }, "ssm_out"
		}
		return l
	}))
	return nil
}
