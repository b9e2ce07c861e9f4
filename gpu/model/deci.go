package model

import "ganglion/gpu/ops"

// deci is Nemotron-Super and DeciLM: Llama with layers that a search has thinned out.
// A layer may have no attention, a single matrix in its place (no KV heads), or no
// feed-forward network; the last kind has no effect at all in the reference, its
// attention included.
func deci(g *graph) error {
	a := attention{table: g.rope(ropeSpec{factors: true})}
	whole := preNorm(a, func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) })
	for g.last >= 0 && g.ff[g.last] == 0 {
		g.last--
	}
	x := g.embed(1)
	for g.il = 0; g.il < g.blocks; g.il++ {
		switch {
		case g.ff[g.il] == 0:
			g.spare("attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_qkv.weight", "attn_output.weight",
				"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_qkv.bias", "attn_output.bias")
		case g.heads[g.il] > 0 && g.kvHeads[g.il] > 0:
			x = g.step(whole, x)
		default:
			x = g.thinned(whole, x)
		}
	}
	if g.last < 0 {
		x = g.Outputs(x)
	}
	g.head(x)
	return nil
}

// thinned is a layer without attention, or with a matrix instead of it.
func (g *graph) thinned(l layer, x ops.View) ops.View {
	if g.heads[g.il] > 0 {
		h := g.norm(l.attnNorm, x)
		x = g.Sum("attn_residual", g.linear("attn_output", h, g.embd), x)
	}
	g.outputs(&x)
	return g.Sum("ffn_residual", l.ff(g.norm(l.ffNorm, x)), x)
}
