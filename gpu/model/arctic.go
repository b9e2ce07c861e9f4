package model

import "ganglion/gpu/ops"

// arctic is Snowflake Arctic: a dense network of the stream's width after attention,
// and beside both a mixture that reads the layer's input.
func arctic(g *graph) error {
	a := attention{table: g.rope(ropeSpec{})}
	x := g.embed(1)
	for g.il = 0; g.il < g.blocks; g.il++ {
		h := g.attend(a, g.norm("attn_norm", x))
		g.outputs(&h, &x)
		in := x
		x = g.Sum("attn_residual", g.linear("attn_output", h, g.embd), x)
		n := g.norm("ffn_norm", x)
		dense := g.linear("ffn_down", g.GLU("ffn_glu", ops.SiLU, g.linear("ffn_gate", n, g.embd), g.linear("ffn_up", n, g.embd)), g.embd)
		x = g.Sum("ffn_residual", dense, x)
		x = g.Sum("moe_residual", g.mixture(moe{act: ops.SiLU, norm: true, ff: g.ff[g.il]}, g.norm("ffn_norm_exps", in)), x)
	}
	g.head(x)
	return nil
}
