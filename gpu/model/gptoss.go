package model

import "ganglion/gpu/ops"

// gptOSS is gpt-oss: every other layer attends to a window, heads have sinks, the
// router's softmax runs over the chosen experts alone, and the gate is limited and
// multiplied by σ(1.702·gate).
func gptOSS(g *graph) error {
	local := g.sliding(attention{neox: true}, g.rope(ropeSpec{base: g.localBase(g.ropeBase)}))
	attn := g.alternating(g.local, 2, local, halves(g))
	ff := func(n ops.View) ops.View {
		return g.mixture(moe{act: ops.SiLU, gating: ops.RouteRaw, limit: 7, alpha: 1.702, upOffset: 1}, n)
	}
	g.head(g.alike(g.embed(1), layer{ff: ff, attnNorm: "attn_norm", ffNorm: "post_attention_norm"}, attn))
	return nil
}
