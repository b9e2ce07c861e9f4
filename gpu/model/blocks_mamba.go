package model

import "ganglion/gpu/ops"

// mamba1 is the Mamba mixer: convolution, a scan with a decay for each channel and
// state, the gate z. Time step, B and C are normalised where the file has the weights
// or normed says so (FalconMamba, without weights). ssm_out reads the result.
func (g *graph) mamba1(s stateSpace, normed bool, n ops.View) ops.View {
	xz := g.linear("ssm_in", n, 2*s.inner)
	z := xz.Cols(s.inner, s.inner)
	x := g.convolve("ssm_conv1d", s.conv, ops.SiLU, xz.Cols(0, s.inner))
	p := g.linear("ssm_x", x, s.rank+2*s.state)
	dt, b, c := p.Cols(0, s.rank), p.Cols(s.rank, s.state), p.Cols(s.rank+s.state, s.state)
	if normed || (g.has("ssm_dt_norm.weight") && g.has("ssm_b_norm.weight") && g.has("ssm_c_norm.weight")) {
		dt, b, c = g.mayNorm("ssm_dt_norm", dt), g.mayNorm("ssm_b_norm", b), g.mayNorm("ssm_c_norm", c)
	}
	dt = g.activate(ops.Softplus, g.linear("ssm_dt", dt, s.inner))
	y := g.Buffer("ssm_y", s.inner)
	state := g.State(ops.State{Name: g.blk("ssm"), Floats: s.inner * s.state})
	g.Add(&ops.Mamba1{A: g.matrix(g.blk("ssm_a"), s.state, s.inner), D: g.vector(g.blk("ssm_d"), s.inner),
		N: s.state, State: state, X: x, Dt: dt, B: b, C: c, Out: y})
	return g.GLU("ssm_gated", ops.SiLU, z, y)
}

// mayNorm is an RMSNorm with the layer's weight if there is one.
func (g *graph) mayNorm(name string, v ops.View) ops.View {
	return g.normalize(name, g.optional(g.blk(name+".weight"), v.Width), nil, 0, v)
}

// mamba2 is the Mamba-2 mixer: z, xBC and the time step come from one projection; the
// result is normalised by group. ssm_out reads it.
func (g *graph) mamba2(s stateSpace, n ops.View) ops.View {
	bc := s.groups * s.state
	in := g.linear("ssm_in", n, 2*s.inner+2*bc+s.rank)
	z := in.Cols(0, s.inner)
	xbc := g.convolve("ssm_conv1d", s.conv, ops.SiLU, in.Cols(s.inner, s.inner+2*bc))
	dt := g.addVector(g.values("ssm_dt.bias", s.rank), false, in.Cols(2*s.inner+2*bc, s.rank))
	y := g.scan(s, xbc.Cols(0, s.inner), dt, xbc.Cols(s.inner, bc), xbc.Cols(s.inner+bc, bc))
	y = g.GLU("ssm_gated", ops.SiLU, z, y)
	if s.mayBare && !g.has("ssm_norm.weight") {
		return y
	}
	return g.normalize("ssm_norm", g.values("ssm_norm.weight", s.inner), nil, s.inner/s.groups, y)
}

// scan is the scan of Mamba 2 with one decay for each head; dt is the time step before
// its softplus.
func (g *graph) scan(s stateSpace, x, dt, b, c ops.View) ops.View {
	y := g.Buffer("ssm_y", s.inner)
	state := g.State(ops.State{Name: g.blk("ssm"), Floats: s.inner * s.state})
	g.Add(&ops.Mamba2{A: g.values("ssm_a", s.rank), D: g.values("ssm_d", s.rank), Heads: s.rank, Groups: s.groups, N: s.state,
		State: state, X: x, Dt: g.activate(ops.Softplus, dt), B: b, C: c, Out: y})
	return y
}
