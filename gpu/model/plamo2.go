package model

import (
	"math"

	"ganglion/gpu/ops"
)

// plamo2 is PLaMo 2: layers with a scan of Mamba 2 behind Mamba 1's projections (those
// without KV heads) among attention layers, norms before and after both branches.
func plamo2(g *graph) error {
	s := g.headed(g.readStateSpace(false))
	a := halves(g)
	a.scale = 1 / math.Sqrt(float64(max(g.valueLen, 1))) // by the width of values, which may differ
	ff := func(n ops.View) ops.View { return g.glu(ops.SiLU, g.width(), n) }
	g.head(g.layers(g.embed(1), func() layer {
		l := preNorm(a, ff)
		l.attnPost, l.ffPost = "post_attention_norm", "post_ffw_norm"
		if g.recurrentByHeads() {
			l.mix, l.out = func(n ops.View) ops.View { return g.plamo2Mixer(s, n) }, "ssm_out"
		}
		return l
	}))
	return nil
}

// plamo2Mixer has z and x head by head in one projection, B, C and a time step of its
// own width, each normalised, and a decay for each head.
func (g *graph) plamo2Mixer(s stateSpace, n ops.View) ops.View {
	head, step := s.inner/s.rank, max(64, g.embd/16)
	zx := g.linear("ssm_in", n, 2*s.inner)
	z, x := g.part("ssm_z", zx, 2*head, 0, head), g.part("ssm_x_part", zx, 2*head, head, head)
	x = g.convolve("ssm_conv1d", s.conv, ops.SiLU, x)
	p := g.linear("ssm_x", x, 2*s.state+step)
	b, c := g.norm("ssm_b_norm", p.Cols(0, s.state)), g.norm("ssm_c_norm", p.Cols(s.state, s.state))
	dt := g.linear("ssm_dt", g.norm("ssm_dt_norm", p.Cols(2*s.state, step)), s.rank)
	return g.GLU("ssm_gated", ops.SiLU, z, g.scan(s, x, dt, b, c))
}
