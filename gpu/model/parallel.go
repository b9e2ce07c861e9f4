package model

import "ganglion/gpu/ops"

// Families whose attention and feed-forward network can both read the layer's input.

// commandR is Command R: LayerNorm without bias, one for both branches; logits have a
// scale. Its large model has LayerNorm on the heads of q and k.
func commandR(g *graph) error {
	g.kind = layerNorm
	a := attention{table: g.rope(ropeSpec{})}
	return cohereLayers(g, g.keys.float("logit_scale", 0), func() attention { return a }, g.siluFeedForward)
}

// cohere2 is Command R7B and A: three local layers with RoPE to one global without.
func cohere2(g *graph) error {
	const period = 4
	g.kind = layerNorm
	g.needWindow()
	g.rotateAsFirst(period)
	global := attention{table: -1}
	local := g.sliding(global, g.rope(ropeSpec{factors: true}))
	return cohereLayers(g, g.keys.need("logit_scale"), g.alternating(g.local, period, local, global), g.siluFeedForward)
}

// siluFeedForward is the feed-forward network with SiLU.
func (g *graph) siluFeedForward(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) }

func cohereLayers(g *graph, logitScale float64, attn func() attention, ff func(ops.View) ops.View) error {
	l := layer{attnNorm: "attn_norm", parallel: true, ff: ff}
	x := g.alike(g.embed(1), l, attn)
	g.logits(logitScale, g.normNamed("output_norm", x))
	return nil
}

// falcon is Falcon: one norm for both branches in the 7B model, one for each in the
// 40B one (attn_norm_2 is the attention's).
func falcon(g *graph) error {
	g.kind = layerNorm
	a := attention{table: g.rope(ropeSpec{}), neox: true}
	x := g.layers(g.embed(1), func() layer {
		l := layer{attn: a, attnNorm: "attn_norm", parallel: true, ff: func(n ops.View) ops.View { return g.mlp(ops.GELU, n) }}
		if g.has("attn_norm_2.weight") {
			l.attnNorm, l.ffNorm = "attn_norm_2", "attn_norm"
		}
		g.spare("attn_norm_2.bias") // of use only beside its weight
		return l
	})
	g.head(x)
	return nil
}

// gptneox is GPT-NeoX and Pythia; the file says whether the branches are parallel.
func gptneox(g *graph) error {
	g.kind = layerNorm
	l := preNorm(attention{table: g.rope(ropeSpec{}), neox: true}, func(n ops.View) ops.View { return g.mlp(ops.GELU, n) })
	l.parallel = g.keys.needFlag("use_parallel_residual")
	g.head(g.layers(g.embed(1), func() layer { return l }))
	return nil
}

// phi2 is Phi-1 and 2: one LayerNorm for both branches, biases everywhere.
func phi2(g *graph) error {
	g.kind = layerNorm
	l := layer{attn: attention{table: g.rope(ropeSpec{}), neox: true, early: true}, attnNorm: "attn_norm", parallel: true,
		ff: func(n ops.View) ops.View { return g.mlp(ops.GELU, n) }}
	g.head(g.layers(g.embed(1), func() layer { return l }))
	return nil
}

// plamo is PLaMo: one RMSNorm for both branches; heads are rotated whole.
func plamo(g *graph) error {
	l := layer{attn: attention{table: g.rope(ropeSpec{dim: g.keyLen}), neox: true}, attnNorm: "attn_norm", parallel: true,
		ff: func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) }}
	g.head(g.layers(g.embed(1), func() layer { return l }))
	return nil
}

// stablelm is StableLM: layers without ffn_norm are parallel (StableLM 2 12B), which
// also has LayerNorm on the heads of q and k.
func stablelm(g *graph) error {
	g.kind = layerNorm
	a := attention{table: g.rope(ropeSpec{}), neox: true}
	x := g.layers(g.embed(1), func() layer {
		l := preNorm(a, func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) })
		if !g.has("ffn_norm.weight") {
			l.ffNorm, l.parallel = "", true
		}
		return l
	})
	g.head(x)
	return nil
}
