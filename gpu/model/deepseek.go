package model

import "ganglion/gpu/ops"

// deepseek is DeepSeek 1 (DeepSeekMoE): softmax weights as they are, shared experts as
// one wide expert, leading dense layers.
func deepseek(g *graph) error {
	return experts(g, pairs(g), func() moe {
		return moe{act: ops.SiLU, scale: g.expertScale, shared: g.expertFF[g.il] * g.sharedCount}
	})
}

// deepseek2OCR is the text model of DeepSeek-OCR: as deepseek with rotation of halves
// over whole heads and the gating function of the file.
func deepseek2OCR(g *graph) error {
	if g.ropeBase != 10000 {
		g.fail("key %q: %v, only 10000 is possible", g.key("rope.freq_base"), g.ropeBase)
	}
	a := attention{neox: true, table: g.rope(ropeSpec{dim: g.keyLen, unstretched: true})}
	return experts(g, a, func() moe {
		m := g.listed(ops.RouteSoftmax)
		m.shared = g.expertFF[g.il] * g.sharedCount
		return m
	})
}

// dots1 is dots.llm1: as deepseek with Q/K norms and a gating function that the file
// must name.
func dots1(g *graph) error {
	g.needGating()
	return experts(g, halves(g), func() moe {
		m := g.listed(ops.RouteSigmoid)
		m.shared = g.expertFF[g.il] * g.sharedCount
		return m
	})
}

// listed is the mixture that the file's keys describe; gating is the default.
func (g *graph) listed(gating ops.RouteKind) moe {
	return moe{act: ops.SiLU, gating: g.gating(gating), norm: g.expertNorm, scale: g.expertScale}
}

// bailingMoE is Ling and Ring 1: softmax, shared experts as one wide expert. The
// reference reads leading_dense_block_count and builds experts in every layer.
func bailingMoE(g *graph) error {
	g.denseLead = 0
	return experts(g, pairs(g), func() moe {
		return moe{act: ops.SiLU, norm: g.expertNorm, scale: g.expertScale, shared: g.expertFF[g.il] * g.sharedCount}
	})
}

// bailingMoE2 is Ling and Ring 2: Q/K norms, a gating function that the file must
// name, groups, leading dense layers.
func bailingMoE2(g *graph) error {
	g.needGating()
	return experts(g, halves(g), func() moe {
		m := g.listed(ops.RouteSoftmax)
		m.shared = g.sharedOr(g.expertFF[g.il]) * g.sharedCount
		return m
	})
}
