package model

import (
	"ganglion/gpu/ops"
)

// Families that mix local and global layers, beside Gemma and Cohere.

// exaone4 is EXAONE 4: norms only behind the branches, and on the heads of q and k.
// Its 32B model, which the reference knows by its depth, has three local layers to one
// global without RoPE; the others have neither windows nor layers without RoPE.
func exaone4(g *graph) error {
	const period = 4
	if g.blocks != 64 {
		g.window = 0
	} else if !g.keys.has("attention.sliding_window") {
		g.window = 4096
	} else {
		g.needWindow()
	}
	g.rotateAsFirst(period)
	a := attention{table: g.rope(ropeSpec{factors: true}), neox: true, qkNorm: qkRequired}
	attn := func() attention { return a }
	if g.window > 0 {
		local := g.sliding(a, a.table)
		a.table = -1
		attn = g.alternating(g.local, period, local, a)
	}
	return postNormLayers(g, attn)
}

// olmo2 is OLMo 2 and 3: norms only behind the branches, and over all heads of q and
// k together. OLMo 3 has three local layers to one global; rope.scaling is for the
// global ones.
func olmo2(g *graph) error {
	const period = 4
	g.rotateAsFirst(period)
	global := attention{table: g.rope(ropeSpec{}), neox: true, qkNorm: qkRequired}
	local := g.sliding(global, g.rope(ropeSpec{unstretched: true}))
	return postNormLayers(g, g.alternating(g.local, period, local, global))
}

// postNormLayers have norms behind the branches only.
func postNormLayers(g *graph, attn func() attention) error {
	l := layer{attnPost: "post_attention_norm", ffPost: "post_ffw_norm",
		ff: func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) }}
	g.head(g.alike(g.embed(1), l, attn))
	return nil
}

// plamo3 is PLaMo 3: seven local layers to one global, norms before and behind the
// branches and on the heads of q and k.
func plamo3(g *graph) error {
	const period = 8
	g.rotateAsFirst(period)
	global := attention{table: g.rope(ropeSpec{}), neox: true, qkNorm: qkRequired}
	local := g.sliding(global, g.rope(ropeSpec{base: g.localBase(10000), unscaled: true}))
	l := preNorm(global, func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) })
	sandwich(g, &l)
	attn := g.alternating(g.local, period, local, global)
	g.head(g.alike(g.embed(1), l, attn))
	return nil
}

// museGlimmer is Muse Glimmer: embeddings are normalised, three local layers with RoPE
// to one global without, a gate on the heads' outputs.
func museGlimmer(g *graph) error {
	const period = 4
	g.needWindow()
	g.rotateAsFirst(period)
	g.finalSoftcap = g.keys.float("final_logit_softcapping", 30)
	global := attention{table: -1, qkNorm: qkRequired, gate: "attn_gate"}
	local := g.sliding(global, g.rope(ropeSpec{base: g.localBase(g.ropeBase), unscaled: true}))
	l := preNorm(global, func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) })
	sandwich(g, &l)
	l.postEps = 1e-8
	attn := g.alternating(g.local, period, local, global)
	x := g.alike(g.normed(bare, g.embed(1)), l, attn)
	g.logits(g.keys.need("logit_scale"), g.normNamed("output_norm", x))
	return nil
}

// spark25 is Spark 2.5: the file says which layers are local; a gate for each head on
// its output, GELU in the feed-forward network.
func spark25(g *graph) error {
	g.needWindow()
	if g.pattern == nil {
		g.fail("key %q is missing", g.key("attention.sliding_window_pattern"))
	}
	global := attention{table: g.rope(ropeSpec{}), neox: true, gate: "attn_gate"}
	local := g.sliding(global, g.rope(ropeSpec{base: g.localBase(g.ropeBase), dim: g.ropeDimSWA}))
	attn := g.alternating(g.local, 0, local, global)
	g.head(g.decode(g.embed(1), attn, func(n ops.View) ops.View { return g.feedForward(ops.GELU, n) }))
	return nil
}
