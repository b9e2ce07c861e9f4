package model

import (
	"math"

	"ganglion/gpu/ops"
)

// gemma is Gemma 1: embeddings scaled by √n_embd, GELU gate. The "+1" of Gemma's
// norms is already in the file.
func gemma(g *graph) error {
	x := g.embed(float32(math.Sqrt(float64(g.embd))))
	a := attention{table: g.rope(ropeSpec{}), neox: true, early: true}
	ff := func(n ops.View) ops.View { return g.feedForward(ops.GELU, n) }
	g.head(g.decode(x, func() attention { return a }, ff))
	return nil
}

// gemma2 adds norms behind both branches, caps on scores and logits, and a sliding
// window on every other layer, the first one included.
func gemma2(g *graph) error {
	const period = 2
	if !g.keys.has("attention.sliding_window") {
		g.window = 4096
	}
	g.rotateAsFirst(period)
	g.finalSoftcap = g.keys.float("final_logit_softcapping", 30)
	global := attention{table: g.rope(ropeSpec{}), neox: true, early: true,
		softcap: g.keys.positive("attn_logit_softcapping", 50), scale: g.wideScale(46)}
	local := g.sliding(global, g.rope(ropeSpec{base: g.localBase(g.ropeBase)}))
	return gemmaLayers(g, global, local, period)
}

// gemma3 has five local layers to one global and RMSNorm on the heads of q and k.
// Local layers rotate with base 10000 and no scaling. The rows of a picture see to its end
// in all layers.
func gemma3(g *graph) error {
	const period = 6
	g.rotateAsFirst(period)
	global := attention{table: g.rope(ropeSpec{}), neox: true, early: true, qkNorm: qkRequired, scale: g.wideScale(62), ahead: true}
	local := g.sliding(global, g.rope(ropeSpec{base: g.localBase(10000), unscaled: true}))
	return gemmaLayers(g, global, local, period)
}

// gemmaLayers is the body of Gemma 2 and 3.
func gemmaLayers(g *graph, global, local attention, period int) error {
	x := g.embed(float32(math.Sqrt(float64(g.embd))))
	l := layer{attnNorm: "attn_norm", attnPost: "post_attention_norm", ffNorm: "ffn_norm", ffPost: "post_ffw_norm",
		ff: func(n ops.View) ops.View { return g.feedForward(ops.GELU, n) }}
	attn := g.alternating(g.local, period, local, global)
	g.head(g.alike(x, l, attn))
	return nil
}

// wideScale is the score scale of Gemma's 27B models, which goes by the width per
// head of the residual stream; the reference knows them by their depth, for the file
// does not say. 0 for others.
func (g *graph) wideScale(depth int) float64 {
	if g.blocks != depth || g.attnScale != 0 || g.heads[0] < 1 {
		return 0
	}
	return 1 / math.Sqrt(float64(g.embd/g.heads[0]))
}
