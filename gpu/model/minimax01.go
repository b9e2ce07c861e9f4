package model

import "ganglion/gpu/ops"

// minimax01 is MiniMax-Text-01: lightning attention (linear, with a decay for each
// head) in all but every eighth layer, softmax experts. Its residual stream carries the
// normalised inputs of the branches, scaled, not their sums.
func minimax01(g *graph) error {
	const interval = 8
	a := halves(g)
	recurrent := g.recurrentLayers(interval)
	scale := g.keys.need("residual_scale")
	x := g.embed(1)
	for g.il = 0; g.il < g.blocks; g.il++ {
		n := g.norm("attn_norm", x)
		var h ops.View
		if recurrent[g.il] {
			h = g.lightning(n)
		} else {
			h = g.attend(a, n)
		}
		g.outputs(&h, &n)
		x = g.Sum("attn_residual", g.linear("attn_output", h, g.embd), g.scaled(scale, n))
		n = g.norm("ffn_norm", x)
		x = g.Sum("ffn_residual", g.mixture(moe{act: ops.SiLU, norm: true}, n), g.scaled(scale, n))
	}
	g.head(x)
	return nil
}

// lightning is linear attention: M ← e^−s·M + v·kᵀ, o = M·q for each head, which is the
// scan of Mamba 2 with a time step of 1, followed by a norm and a gate. The decay s falls
// from head to head as in ALiBi and from layer to layer.
func (g *graph) lightning(n ops.View) ops.View {
	heads, d := g.heads[g.il], g.keyLen
	if heads < 1 || d < 1 {
		g.fail("keys %q and %q: layer %d has %d heads of %d", g.key("attention.head_count"), g.key("attention.key_length"), g.il, heads, d)
		return n
	}
	qkv := g.activate(ops.SiLU, g.linear("attn_qkv", n, 3*heads*d))
	q, k, v := g.part("q", qkv, 3*d, 0, d), g.part("k", qkv, 3*d, d, d), g.part("v", qkv, 3*d, 2*d, d)
	one := g.Buffer("time_step", heads)
	g.Add(&ops.Scale{Factor: 0, Offset: 1, In: v.Cols(0, heads), Out: one})
	state := g.State(ops.State{Name: g.blk("lightning"), Floats: heads * d * d})
	o := g.Buffer("lightning", heads*d)
	g.Add(&ops.Mamba2{A: g.derived(g.blk("lightning.decay"), g.lightningDecay(heads)),
		D: g.derived("lightning.zero", make([]float32, heads)), Heads: heads, Groups: heads, N: d,
		State: state, X: v, Dt: one, B: k, C: q, Out: o})
	gate := g.sigmoid(g.linear("attn_gate", n, heads*d))
	return g.multiply(gate, g.norm("attn_norm_2", o))
}

// lightningDecay is −s of every head in this layer.
func (g *graph) lightningDecay(heads int) []float32 {
	layer := 1 + 1e-5
	if g.blocks > 1 {
		layer -= float64(g.il) / float64(g.blocks-1)
	}
	out := ops.HeadDecays(heads)
	for h, s := range out {
		out[h] = float32(-layer * float64(s))
	}
	return out
}
