package model

import "ganglion/gpu/ops"

// mamba is Mamba and FalconMamba: layers of one branch, a Mamba mixer.
func mamba(g *graph) error {
	s := g.readStateSpace(false)
	normed := g.keys.flag("ssm.dt_b_c_rms", false)
	return g.mixers(func(n ops.View) ops.View { return g.mamba1(s, normed, n) })
}

// mambaTwo is Mamba 2: the same with its mixer.
func mambaTwo(g *graph) error {
	s := g.headed(g.readStateSpace(true))
	return g.mixers(func(n ops.View) ops.View { return g.mamba2(s, n) })
}

// mixers is the model without attention and feed-forward.
func (g *graph) mixers(mix func(n ops.View) ops.View) error {
	x := g.embed(1)
	for g.il = 0; g.il < g.blocks; g.il++ {
		h := mix(g.norm("attn_norm", x))
		g.outputs(&h, &x)
		x = g.Sum("residual", g.linear("ssm_out", h, g.embd), x)
	}
	g.head(x)
	return nil
}

// jamba is Jamba: Mamba layers (those without KV heads) among attention layers without
// rotation; a mixture where the layer has a router, its weights as the router gives
// them.
func jamba(g *graph) error {
	s := g.readStateSpace(false)
	ff := func(n ops.View) ops.View {
		if g.has("ffn_gate_inp.weight") {
			return g.mixture(moe{act: ops.SiLU}, n)
		}
		return g.glu(ops.SiLU, g.width(), n)
	}
	g.head(g.layers(g.embed(1), func() layer {
		l := preNorm(attention{table: -1}, ff)
		if g.recurrentByHeads() {
			l.mix, l.out = func(n ops.View) ops.View { return g.mamba1(s, false, n) }, "ssm_out"
		}
		return l
	}))
	return nil
}

// falconH1 is Falcon-H1: attention and a Mamba-2 mixer side by side in every layer. The
// reference has no use for attn_output.bias.
func falconH1(g *graph) error {
	s := g.headed(g.readStateSpace(true))
	s.mayBare = true
	a := halves(g)
	x := g.embed(1)
	for g.il = 0; g.il < g.blocks; g.il++ {
		n := g.norm("attn_norm", x)
		h, m := g.attend(a, n), g.mamba2(s, n)
		g.outputs(&h, &m, &x)
		g.spare("attn_output.bias")
		h = g.MatMul("attn_output", g.matrix(g.blk("attn_output.weight"), h.Width, g.embd), nil, h)
		both := g.Sum("branches", h, g.linear("ssm_out", m, g.embd))
		x = g.Sum("residual", both, x)
		x = g.Sum("ffn_residual", g.glu(ops.SiLU, g.width(), g.norm("ffn_norm", x)), x)
	}
	g.head(x)
	return nil
}
