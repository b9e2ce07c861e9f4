package model

import "ganglion/gpu/ops"

// groveMoE is GroveMoE: qwen3moe with adjugate experts, each shared by a group of
// neighbouring experts. As in the reference they read what the experts gave, and are
// chosen again by the same logits.
func groveMoE(g *graph) error {
	share := g.keys.dim("experts_per_group", -1)
	scale := g.keys.need("expert_group_scale")
	width := g.keys.dim("expert_chunk_feed_forward_length", 0)
	if share < 1 || g.experts%share != 0 {
		g.fail("key %q: %d experts in groups of %d", g.key("experts_per_group"), g.experts, share)
		return nil
	}
	if g.groups > 1 { // the shared experts are chosen without
		g.fail("key %q: %d groups are not possible here", g.key("expert_group_count"), g.groups)
	}
	if width == 0 {
		width = g.keyLen
	}
	a := halves(g)
	a.qkNorm = qkRequired
	ff := func(n ops.View) ops.View {
		m := normalised()
		m.router = g.linear("ffn_gate_inp", n, g.experts)
		y := g.mixture(m, n)
		if g.failed() != nil {
			return y
		}
		m.share, m.suffix, m.ff = share, "chexps", width
		k := min(g.expertsUsed[g.il], m.stack(g))
		if k < 1 {
			return y // the mixture has named the fault
		}
		r := g.route(m, k, m.router)
		return g.Sum("ffn_out", y, g.scaled(scale, g.runExperts(m, r, y)))
	}
	g.head(g.decode(g.embed(1), func() attention { return a }, ff))
	return nil
}
