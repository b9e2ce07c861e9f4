package model

import "ganglion/gpu/ops"

// lfm2 is LFM2: short convolutions (layers without KV heads) among attention layers
// with Q/K norms, all of them local where the file gives a window.
func lfm2(g *graph) error {
	a := halves(g)
	if a.window = g.window; g.window > 0 && g.kvHeads[0] > 0 {
		// As many columns as in layer 0, which is a local one.
		a.table = g.rope(ropeSpec{dim: g.ropeDimSWA})
	}
	return liquid(g, a, func(n ops.View) ops.View { return g.glu(ops.SiLU, g.width(), n) })
}

// lfm2moe is LFM2-MoE: the same with experts behind the leading dense layers, a gating
// function that the file must name and a bias for choosing.
func lfm2moe(g *graph) error {
	g.needGating()
	return liquid(g, halves(g), func(n ops.View) ops.View {
		return g.sparse(moe{act: ops.SiLU, gating: g.gating(ops.RouteSigmoid), norm: true}, n)
	})
}

// liquid is the decoder of both. Its last norm is named token_embd_norm.
func liquid(g *graph, a attention, ff func(ops.View) ops.View) error {
	a.qkNorm = qkRequired
	kernel := g.keys.dim("shortconv.l_cache", -1)
	if kernel < 2 || kernel > maxKernel {
		g.fail("key %q is %d, want 2 … %d", g.key("shortconv.l_cache"), kernel, maxKernel)
		kernel = 2
	}
	x := g.layers(g.embed(1), func() layer {
		l := preNorm(a, ff)
		if g.recurrentByHeads() {
			l.mix, l.out = func(n ops.View) ops.View { return g.shortConv(kernel, n) }, "shortconv.out_proj"
		}
		return l
	})
	g.logits(1, g.normNamed("token_embd_norm", x))
	return nil
}
