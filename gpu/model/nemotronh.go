package model

import "ganglion/gpu/ops"

// nemotronH is Nemotron-H, with and without experts: every layer has one branch, which
// is attention without rotation, a Mamba-2 mixer (no KV heads and no feed-forward) or a
// feed-forward network with squared ReLU.
func nemotronH(g *graph) error {
	s := g.headed(g.readStateSpace(true))
	if g.eps == 0 {
		g.eps = g.layerEps
	}
	x := g.embed(1)
	for g.il = 0; g.il < g.blocks; g.il++ {
		n := g.norm("attn_norm", x)
		var h ops.View
		switch {
		case g.ff[g.il] > 0:
			g.outputs(&n, &x)
			h = g.nemotronFF(n)
		case g.kvHeads[g.il] == 0:
			h = g.mamba2(s, n)
			g.outputs(&h, &x)
			h = g.linear("ssm_out", h, g.embd)
		default:
			h = g.attend(attention{table: -1}, n)
			g.outputs(&h, &x)
			h = g.linear("attn_output", h, g.embd)
		}
		x = g.Sum("residual", h, x)
	}
	g.head(x)
	return nil
}

// nemotronFF is the network without a gate, or the mixture: experts that may work in a
// narrower latent space, and a shared expert on the full width.
func (g *graph) nemotronFF(n ops.View) ops.View {
	if g.experts == 0 {
		return g.mlp(ops.ReLU2, n)
	}
	m := moe{act: ops.ReLU2, gating: ops.RouteSigmoid, norm: g.expertNorm, scale: g.expertScale, shared: g.sharedFF,
		router: g.linear("ffn_gate_inp", n, g.experts)}
	latent := n
	if size := g.keys.dim("moe_latent_size", 0); size > 0 && g.has("ffn_latent_down.weight") {
		m.out = size
		latent = g.linear("ffn_latent_down", n, size)
	}
	shared := g.sharedExpert(m, n)
	m.shared = 0
	out := g.mixture(m, latent)
	if m.out > 0 {
		out = g.linear("ffn_latent_up", out, g.embd)
	}
	return g.Sum("ffn_out", out, shared)
}
