package model

import "ganglion/gpu/ops"

// bitnet is BitNet b1.58: norms also before the output matrices of both branches. The
// head is the embedding.
func bitnet(g *graph) error {
	l := preNorm(attention{table: g.rope(ropeSpec{}), neox: true}, func(n ops.View) ops.View {
		h := g.gated(ops.SiLU, g.width(), n)
		return g.linear("ffn_down", g.norm("ffn_sub_norm", h), g.embd)
	})
	l.heads = "attn_sub_norm"
	g.head(g.layers(g.embed(1), func() layer { return l }))
	return nil
}
