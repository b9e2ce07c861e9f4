package model

import (
	"math"

	"ganglion/gpu/ops"
)

// Families of experts that mix local and global layers.

// afmoe is Arcee's Trinity: embeddings × √n_embd, norms before and behind both
// branches, a gate on the heads' outputs, three local layers to one global; every fourth
// layer is not rotated.
func afmoe(g *graph) error {
	const period = 4
	g.rotateAsFirst(period)
	far := halves(g)
	far.qkNorm, far.gate = qkRequired, "attn_gate"
	near := g.sliding(far, g.rope(ropeSpec{base: g.localBase(g.ropeBase)}))
	attn := g.alternating(g.local, period, near, far)
	l := preNorm(far, func(n ops.View) ops.View {
		m := g.listed(ops.RouteSigmoid)
		m.shared = g.expertFF[g.il] * g.sharedCount
		return g.sparse(m, n)
	})
	sandwich(g, &l)
	g.head(g.layers(g.embed(float32(math.Sqrt(float64(g.embd)))), func() layer {
		l.attn = attn()
		if (g.il+1)%period == 0 {
			l.attn.table = -1
		}
		return l
	}))
	return nil
}

// laguna is Laguna: one global layer to three local ones with another rotation and
// number of heads, a softplus gate on the heads' outputs, by head or by column.
func laguna(g *graph) error {
	const period = 4
	if !g.keys.has("leading_dense_block_count") {
		g.fail("key %q is missing", g.key("leading_dense_block_count"))
	}
	if !g.keys.has("expert_shared_count") {
		g.sharedCount = 1
	}
	far := halves(g)
	far.qkNorm, far.gate, far.gateAct = qkRequired, "attn_gate", ops.Softplus
	near := g.sliding(far, g.rope(ropeSpec{dim: g.ropeDimSWA, base: g.localBase(g.ropeBase), unstretched: true}))
	attn := g.alternating(g.localAfterGlobal, period, near, far)
	g.head(g.decode(g.embed(1), attn, func(n ops.View) ops.View {
		m := g.listed(ops.RouteSigmoid)
		m.shared = g.sharedOr(g.expertFF[g.il] * g.sharedCount)
		return g.sparse(m, n)
	}))
	return nil
}

// mimo2 is MiMo-V2: local and global layers by the file's pattern with head widths and
// rotations of their own, sinks by presence, experts where a layer has a router. Of the
// biases that files have for q, k and v the reference uses none.
func mimo2(g *graph) error {
	g.needWindow()
	if g.pattern == nil {
		g.fail("key %q is missing", g.key("attention.sliding_window_pattern"))
	}
	g.unbiased = []string{"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output"}
	g.rotateAsFirst(0)
	far := halves(g)
	far.outScale = g.keys.float("attention.value_scale", 0)
	near := g.sliding(far, g.rope(ropeSpec{base: g.localBase(10000), unscaled: true}))
	attn := g.alternating(g.local, 0, near, far)
	g.head(g.decode(g.embed(1), attn, func(n ops.View) ops.View {
		return g.routed(moe{act: ops.SiLU, gating: ops.RouteSigmoid, norm: true}, n)
	}))
	return nil
}

// step35 is Step 3.5: local and global layers by the file's pattern, of which the global
// ones rotate half as many columns, a gate for each head on its output, experts beside a
// shared one where a layer has a router, limits behind the activation.
func step35(g *graph) error {
	g.needWindow()
	if g.pattern == nil {
		g.fail("key %q is missing", g.key("attention.sliding_window_pattern"))
	}
	if g.ropeDim%4 != 0 {
		g.fail("key %q: half of %d is odd", g.key("rope.dimension_count"), g.ropeDim)
	}
	far := attention{neox: true, table: g.rope(ropeSpec{dim: g.ropeDim / 2, factors: true}), gate: "attn_gate"}
	near := g.sliding(far, g.rope(ropeSpec{dim: g.ropeDimSWA, base: g.localBase(10000), unscaled: true}))
	attn := g.alternating(g.local, 0, near, far)
	capped, sharedCapped := g.caps("swiglu_clamp_exp"), g.caps("swiglu_clamp_shexp")
	g.head(g.decode(g.embed(1), attn, func(n ops.View) ops.View {
		m := g.listed(ops.RouteSigmoid)
		m.capped, m.sharedCapped, m.shared = capped[g.il], sharedCapped[g.il], g.sharedFF
		if g.has("ffn_gate_inp.weight") || m.sharedCapped == 0 {
			return g.routed(m, n)
		}
		h := g.Buffer("ffn_glu", g.width())
		g.combine(m, m.sharedCapped, g.linear("ffn_gate", n, g.width()), g.linear("ffn_up", n, g.width()), h)
		return g.linear("ffn_down", h, g.embd)
	}))
	return nil
}

// caps reads limits that hold behind SiLU. A limit closer to 0 than SiLU's least value
// is refused: it would have to hold above only.
func (g *graph) caps(name string) []float32 {
	const least = 0.2785
	if _, list := g.src.Floats(g.key(name)); !list && !g.keys.has(name) {
		return make([]float32, g.blocks)
	}
	out := g.limits(name)
	for il, v := range out {
		if v != 0 && v < least {
			g.fail("key %q: a limit of %v in layer %d is not possible, the least is %v", g.key(name), v, il, least)
		}
	}
	return out
}

// cohere2MoE is Cohere's Command with experts: one norm for both branches, which is
// RMSNorm where the file gives its epsilon; one global layer to three local ones,
// rotation on these and on the leading dense layers; the experts and the shared expert
// count half.
func cohere2MoE(g *graph) error {
	const period = 4
	if g.eps == 0 {
		g.kind = layerNorm
	}
	g.needWindow()
	if !g.keys.has("leading_dense_block_count") {
		g.fail("key %q is missing", g.key("leading_dense_block_count"))
	}
	table := g.rope(ropeSpec{factors: true})
	far := attention{table: -1}
	attn := g.alternating(g.localAfterGlobal, period, g.sliding(far, table), far)
	rotated := func() attention {
		a := attn()
		if g.il < g.denseLead {
			a.table = table
		}
		return a
	}
	return cohereLayers(g, g.keys.need("logit_scale"), rotated, g.cohereExperts)
}

func (g *graph) cohereExperts(n ops.View) ops.View {
	m := g.listed(ops.RouteSigmoid)
	m.ff = g.expertFF[g.il]
	if m.ff == 0 {
		m.ff = g.width()
	}
	if g.sharedCount > 0 {
		m.shared = g.sharedOr(m.ff * g.sharedCount)
	}
	y := g.sparse(m, n)
	if g.il >= g.denseLead && m.shared > 0 {
		g.scaled(0.5, y)
	}
	return y
}
