package model

import "ganglion/gpu/ops"

// smallThinker is SmallThinker: the router reads the layer's input before attention,
// experts have a ReLU gate. With a window, every fourth layer from the first is global
// and not rotated; the reference fixes the window at 4096 whatever the file says.
func smallThinker(g *graph) error {
	const period, window = 4, 4096
	g.needGating()
	far := halves(g)
	near := g.sliding(far, g.rope(ropeSpec{base: g.localBase(g.ropeBase)}))
	near.window = window
	attn := g.alternating(g.localAfterGlobal, period, near, far)
	x := g.embed(1)
	for g.il = 0; g.il < g.blocks; g.il++ {
		a := attn()
		if g.window > 0 && g.il%period == 0 {
			a.table = -1
		}
		router := g.linear("ffn_gate_inp", x, g.experts)
		h := g.attend(a, g.norm("attn_norm", x))
		g.outputs(&h, &x, &router)
		x = g.Sum("attn_residual", g.linear("attn_output", h, g.embd), x)
		m := moe{act: ops.ReLU, gating: g.gating(ops.RouteSigmoid), norm: true, router: router}
		x = g.Sum("ffn_residual", g.mixture(m, g.norm("ffn_norm", x)), x)
	}
	g.head(x)
	return nil
}
