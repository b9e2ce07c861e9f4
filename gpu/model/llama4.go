package model

import "ganglion/gpu/ops"

// llama4 is Llama 4: three local layers, which attend to their chunk of 8192
// positions and rotate, to one global layer without rotation, whose queries grow with
// the position. After the rotation the heads of q and k are normalised without weights
// (not in the model of 128 experts). Experts stand in every
// interleave_moe_layer_step-th layer, are chosen by their logits and weigh their input
// by the logit's sigmoid. A sliding window of 0 in the file means that all layers are
// global and rotate.
func llama4(g *graph) error {
	const period, window = 4, 8192
	if !g.keys.has("interleave_moe_layer_step") {
		g.fail("key %q is missing", g.key("interleave_moe_layer_step"))
	}
	chunked := g.window > 0 || !g.keys.has("attention.sliding_window")
	far := attention{table: g.rope(ropeSpec{factors: true})}
	near := far
	if chunked {
		g.window = window
		near = g.sliding(far, g.rope(ropeSpec{base: g.localBase(g.ropeBase), factors: true}))
		near.chunked = true
	}
	attn := g.alternating(g.local, period, near, far)
	rotated := func() attention {
		a := attn()
		switch {
		case chunked && (g.il+1)%period == 0:
			a.table = -1
			a.temperature = ops.PosScale{Floor: window, Offset: 1, Scale: 0.1}
		case g.experts != 128:
			a.qkNorm, a.normLate = qkAlways, true
		}
		return a
	}
	ff := func(n ops.View) ops.View {
		if g.moeStep < 1 || (g.il+1)%g.moeStep != 0 {
			return g.glu(ops.SiLU, g.width(), n)
		}
		return g.mixture(moe{act: ops.SiLU, gating: ops.RouteRawSigmoid, before: true, shared: g.expertFF[g.il]}, n)
	}
	g.head(g.decode(g.embed(1), rotated, ff))
	return nil
}
