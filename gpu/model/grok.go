package model

import (
	"math"

	"ganglion/gpu/ops"
)

// grok is Grok 1 and 2: norms before and behind both branches, capped scores, GELU
// experts; where a layer has a dense network too, both add up to their sum over √2.
// The defaults are Grok 1's, whose files have no scales.
func grok(g *graph) error {
	if !g.keys.has("rope.scaling.yarn_beta_fast") {
		g.scaling.betaFast = 8
	}
	if g.scaling.kind != "yarn" {
		g.scaling.attnFactor *= g.keys.float("rope.scaling.yarn_attn_factor", 1)
	}
	if ext := g.keys.float("rope.scaling.yarn_ext_factor", -1); ext >= 0 && ext != 1 {
		g.fail("key %q: %v, only 1 is possible", g.key("rope.scaling.yarn_ext_factor"), ext)
		return nil
	}
	a := halves(g)
	a.scale = g.keys.float("attention.output_scale", 0.08838834764831845)
	a.softcap = g.keys.float("attn_logit_softcapping", 30)
	if !(a.softcap > 0) || a.scale == 0 {
		g.fail("keys %q and %q: %v and %v must not be 0", g.key("attn_logit_softcapping"), g.key("attention.output_scale"), a.softcap, a.scale)
		return nil
	}
	l := preNorm(a, g.grokFeedForward)
	l.attnPost = "attn_output_norm"
	x := g.layers(g.embed(float32(g.keys.float("embedding_scale", 78.38367176906169))), func() layer {
		l.ffPost = "layer_output_norm"
		if !g.has("layer_output_norm.weight") {
			l.ffPost = "post_ffw_norm"
		}
		return l
	})
	g.logits(g.keys.float("logit_scale", 0.5773502691896257), g.normNamed("output_norm", x))
	return nil
}

func (g *graph) grokFeedForward(n ops.View) ops.View {
	y := g.mixture(moe{act: ops.GELU, norm: true}, n)
	if !g.has("ffn_up.weight") {
		return y
	}
	return g.scaled(math.Sqrt2/2, g.Sum("ffn_out", g.glu(ops.GELU, g.width(), n), y))
}
