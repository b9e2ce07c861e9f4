package model

import "ganglion/gpu/ops"

// talkie is Talkie: no norm has a weight, q has one scale per head after its norm,
// and every layer adds the embeddings once more, times layer_output_scale.
func talkie(g *graph) error {
	skip := g.normed(bare, g.embed(1))
	l := layer{attn: attention{table: g.rope(ropeSpec{}), neox: true, qkNorm: qkAlways, normLate: true},
		attnNorm: bare, ffNorm: bare, ff: func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) }}
	x := skip
	for g.il = 0; g.il < g.blocks; g.il++ {
		x = g.step(l, x)
		g.outputs(&skip)
		again := g.Buffer("skip", g.embd)
		g.Add(&ops.AddVec{W: g.vector(g.blk("layer_output_scale.weight"), 1), Mul: true, In: skip, Out: again})
		x = g.Sum("layer_out", x, again)
	}
	g.logits(g.keys.need("logit_scale"), g.normed(bare, x))
	return nil
}
