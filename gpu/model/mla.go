package model

import (
	"math"

	"ganglion/gpu/ops"
)

// plm is PLM: latent attention with expanded keys and a network without a gate.
func plm(g *graph) error {
	m := g.readLatent()
	return g.latentLayers(m, 1, 0, 1, func(n ops.View) ops.View { return g.mlp(ops.ReLU2, n) })
}

// minicpm3 is MiniCPM 3: latent attention with rotation of halves, and factors of
// embeddings, branches and logits that the file does not tell.
func minicpm3(g *graph) error {
	const base = 256 // width of the model whose logits are not scaled
	m := g.readLatent()
	m.neox, m.table = true, g.rope(ropeSpec{factors: true})
	return g.latentLayers(m, 12, 1.4/math.Sqrt(float64(g.blocks)), base/float64(g.embd), func(n ops.View) ops.View {
		return g.glu(ops.SiLU, g.width(), n)
	})
}

// latentLayers is the pre-norm decoder with latent attention.
func (g *graph) latentLayers(m latent, embed float32, branch, logits float64, ff func(n ops.View) ops.View) error {
	x := g.layers(g.embed(embed), func() layer {
		l := preNorm(attention{}, ff)
		l.branch = branch
		l.mix = func(n ops.View) ops.View { return g.attendLatent(m, n) }
		return l
	})
	g.logits(logits, g.normNamed("output_norm", x))
	return nil
}
