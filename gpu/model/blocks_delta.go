package model

import (
	"math"

	"ganglion/gpu/ops"
)

// deltaNet is the Gated DeltaNet mixer of a layer; ssm_out reads the result. The key
// heads are s.groups, the value heads s.rank, each s.state wide. Value heads were put
// in tiled order at conversion (head h goes with key head h mod groups) unless
// interleaved (head h goes with key head h·groups/rank).
func (g *graph) deltaNet(s stateSpace, interleaved bool, n ops.View) ops.View {
	keys, vals := s.groups*s.state, s.rank*s.state
	mixed, z := g.deltaInputs(s, n)
	beta, gate := g.deltaGates(s, n)
	qkv := g.convolve("ssm_conv1d", s.conv, ops.SiLU, mixed)
	qk := qkv.Cols(0, 2*keys)
	g.given(g.eps, "attention.layer_norm_rms_epsilon")
	g.Add(&ops.L2Norm{Eps: g.eps, Group: s.state, In: qk, Out: qk})
	q, k, kHeads := qk.Cols(0, keys), qk.Cols(keys, keys), s.groups
	if interleaved && s.rank != s.groups {
		q, k, kHeads = g.repeatHeads(s, "delta_q", q), g.repeatHeads(s, "delta_k", k), s.rank
	}
	o := g.Buffer("delta", vals)
	state := g.State(ops.State{Name: g.blk("ssm"), Floats: vals * s.state})
	g.Add(&ops.GatedDelta{KHeads: kHeads, VHeads: s.rank, Dim: s.state, Scale: float32(1 / math.Sqrt(float64(s.state))),
		State: state, Q: q, K: k, V: qkv.Cols(2*keys, vals), Gate: gate, Beta: beta, Out: o})
	o = g.normalize("ssm_norm", g.vector(g.blk("ssm_norm.weight"), s.state), nil, s.state, o)
	return g.GLU("delta_gated", ops.SiLU, z, o)
}

// repeatHeads gives every value head a copy of its key head.
func (g *graph) repeatHeads(s stateSpace, name string, in ops.View) ops.View {
	out := g.Buffer(name, s.rank*s.state)
	times := s.rank / s.groups
	for i := range times {
		v := out.Cols(i*s.state, out.Width-i*s.state)
		g.blocksOf(s.groups, s.state, in, s.state, v, times*s.state)
	}
	return out
}

// deltaInputs are q|k|v before the convolution and the gate z of the output: two
// projections, or one (ssm_in, older files) with q|k|v|z of each key head.
func (g *graph) deltaInputs(s stateSpace, n ops.View) (mixed, z ops.View) {
	keys, vals := s.groups*s.state, s.rank*s.state
	if g.has("attn_qkv.weight") || !g.has("ssm_in.weight") {
		g.spare("ssm_in.weight")
		return g.linear("attn_qkv", n, 2*keys+vals), g.linear("attn_gate", n, vals)
	}
	g.spare("attn_gate.weight")
	own := vals / s.groups // columns of v that go with a key head
	in := g.linear("ssm_in", n, 2*keys+2*vals)
	group := 2*s.state + 2*own
	mixed = g.Buffer("delta_qkv", 2*keys+vals)
	at := 0
	for _, p := range []struct{ from, width int }{{0, s.state}, {s.state, s.state}, {2 * s.state, own}} {
		g.blocksOf(s.groups, p.width, in.Cols(p.from, in.Width-p.from), group, mixed.Cols(at, s.groups*p.width), p.width)
		at += s.groups * p.width
	}
	return mixed, g.part("delta_z", in, group, 2*s.state+own, own)
}

// deltaGates are β = σ(…) and the logarithm of the decay, softplus(… + bias)·ssm_a,
// for each value head: two projections, or one (ssm_ba) with both for each key head.
func (g *graph) deltaGates(s stateSpace, n ops.View) (beta, gate ops.View) {
	if g.has("ssm_ba.weight") {
		own := s.rank / s.groups
		ba := g.linear("ssm_ba", n, 2*s.rank)
		beta, gate = g.part("delta_beta", ba, 2*own, 0, own), g.part("delta_alpha", ba, 2*own, own, own)
	} else {
		beta, gate = g.linear("ssm_beta", n, s.rank), g.linear("ssm_alpha", n, s.rank)
	}
	gate = g.activate(ops.Softplus, g.addVector(g.values("ssm_dt.bias", s.rank), false, gate))
	return g.sigmoid(beta), g.addVector(g.values("ssm_a", s.rank), true, gate)
}
