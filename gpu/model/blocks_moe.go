package model

import (
	"cmp"

	"ganglion/gpu/ops"
)

// moe is a mixture of experts as a family wants it. What tensors tell is taken by
// presence: biases of the router and of the experts, a bias for choosing
// (exp_probs_b), a scale per expert, a fused gate_up stack.
type moe struct {
	act    ops.Act
	gating ops.RouteKind // see expertParams.gating
	norm   bool          // divide the weights of the chosen experts by their sum
	scale  float64       // of the weights after that; 0 = 1
	out    int           // width of the experts' outputs; 0: of the residual stream
	ff     int           // width of an expert; 0: expert_feed_forward_length, else what the file has

	shared     int  // width of the shared expert (ffn_*_shexp), 0 = none
	sharedGate bool // its output is multiplied by the sigmoid of ffn_gate_inp_shexp

	// Of a gated activation, see ops.GLU.
	limit, alpha, upOffset float32

	// Limits of the gate behind its activation and of ±up, for the experts and for the
	// shared expert; 0 = none.
	capped, sharedCapped float32

	ungated bool     // experts may come without a gate
	before  bool     // the weights multiply the experts' inputs, not their outputs
	router  ops.View // logits made elsewhere; Width 0: ffn_gate_inp times the input
	suffix  string   // of the stacks' names, "exps" when empty
	share   int      // neighbouring experts that are one in the stacks, see ops.Route; 0 = 1
}

// mixture adds the chosen experts' outputs over the normalised input n, and the
// shared expert's: [rows, embd].
func (g *graph) mixture(m moe, n ops.View) ops.View {
	k := g.expertsUsed[g.il]
	if k < 1 || k > g.experts {
		g.fail("key %q: layer %d uses %d of %d experts", g.key("expert_used_count"), g.il, k, g.experts)
		return n
	}
	logits := m.router
	if logits.Width == 0 {
		logits = g.linear("ffn_gate_inp", n, g.experts)
	}
	r := g.route(m, k, logits)
	out := g.runExperts(m, r, n)
	if m.shared > 0 {
		out = g.Sum("ffn_out", out, g.sharedExpert(m, n))
	}
	return out
}

// route chooses k experts by the router's logits.
func (g *graph) route(m moe, k int, logits ops.View) *ops.Route {
	r := &ops.Route{Kind: m.gating, Share: m.share, Bias: g.choosingBias(), TopK: k, Groups: g.groups, GroupsUsed: g.groupsUsed,
		Norm: m.norm, Scale: float32(m.scale), In: logits,
		IDs: g.Indices("experts", k), Weights: g.Buffer("expert_weights", k)}
	g.Add(r)
	return r
}

// choosingBias is exp_probs_b, which files name with and without ".bias".
func (g *graph) choosingBias() *ops.Weight {
	if w := g.optional(g.blk("exp_probs_b.bias"), g.experts); w != nil {
		return w
	}
	return g.optional(g.blk("exp_probs_b"), g.experts)
}

// runExperts runs the experts of a route over n and adds their outputs.
func (g *graph) runExperts(m moe, r *ops.Route, n ops.View) ops.View {
	if m.suffix == "" {
		m.suffix = "exps"
	}
	if m.ff == 0 {
		m.ff = g.expertFF[g.il]
	}
	m.out = cmp.Or(m.out, g.embd)
	if m.before {
		n = g.weighted(r.Weights, n)
	}
	down := "ffn_down_" + m.suffix
	h := g.expertHidden(m, r.IDs, n)
	y := g.expertLinear(m, down, r.IDs, h, h.Width/r.TopK, m.out)
	if m.before {
		out := y.Cols(0, m.out)
		for i := 1; i < r.TopK; i++ {
			out = g.Sum("ffn_moe", out, y.Cols(i*m.out, m.out))
		}
		return out
	}
	out := g.Buffer("ffn_moe", m.out)
	g.Add(&ops.ExpertSum{IDs: r.IDs, Weights: r.Weights, PerExpert: g.optional(g.blk(down+".scale"), m.stack(g)), In: y, Out: out})
	return out
}

// weighted is the input of every chosen expert times its weight: [rows, k·width].
func (g *graph) weighted(weights, n ops.View) ops.View {
	out := g.Buffer("ffn_moe_weighted", n.Width*weights.Width)
	for i := range weights.Width {
		g.Add(&ops.Binary{Kind: ops.MulKind, A: n, B: weights.Cols(i, 1), Out: out.Cols(i*n.Width, n.Width)})
	}
	return out
}

// expertHidden is the activated hidden layer of every chosen expert, side by side:
// [rows, k·ff].
func (g *graph) expertHidden(m moe, ids, n ops.View) ops.View {
	cols := n.Width
	if m.before {
		cols /= ids.Width
	}
	if fused := "ffn_gate_up_" + m.suffix; g.has(fused + ".weight") {
		return g.fusedHidden(m, ids, g.expertLinear(m, fused, ids, n, cols, 2*m.ff))
	}
	up := g.expertLinear(m, "ffn_up_"+m.suffix, ids, n, cols, m.ff)
	out := g.Buffer("ffn_glu", up.Width)
	if m.ungated && !g.has("ffn_gate_"+m.suffix+".weight") {
		g.Add(&ops.Unary{Act: m.act, In: up, Out: out})
		return out
	}
	gate := g.expertLinear(m, "ffn_gate_"+m.suffix, ids, n, cols, up.Width/ids.Width)
	g.combine(m, m.capped, gate, up, out)
	return out
}

// fusedHidden splits each expert's [gate | up] and combines the halves.
func (g *graph) fusedHidden(m moe, ids, gateUp ops.View) ops.View {
	if gateUp.Width%(2*ids.Width) != 0 {
		g.fail("tensor %q has an odd number of rows", g.blk("ffn_gate_up_"+m.suffix+".weight"))
		return gateUp
	}
	ff := gateUp.Width / ids.Width / 2
	out := g.Buffer("ffn_glu", ff*ids.Width)
	for i := range ids.Width {
		g.combine(m, m.capped, gateUp.Cols(2*i*ff, ff), gateUp.Cols((2*i+1)*ff, ff), out.Cols(i*ff, ff))
	}
	return out
}

// stack is the number of matrices in a stack.
func (m moe) stack(g *graph) int { return g.experts / max(m.share, 1) }

// combine is act(gate) · up, with both limited where capped is not 0.
func (g *graph) combine(m moe, capped float32, gate, up, out ops.View) {
	if capped == 0 {
		g.Add(&ops.GLU{Act: m.act, Limit: m.limit, Alpha: m.alpha, UpOffset: m.upOffset, Gate: gate, Up: up, Out: out})
		return
	}
	g.Add(&ops.Unary{Act: m.act, In: gate, Out: out})
	for _, v := range []ops.View{out, up} {
		g.Add(&ops.Scale{Factor: 1, Clamp: capped, In: v, Out: v})
	}
	g.Add(&ops.Binary{Kind: ops.MulKind, A: out, B: up, Out: out})
}

// sharedExpert is the expert every row goes through.
func (g *graph) sharedExpert(m moe, n ops.View) ops.View {
	up := g.linear("ffn_up_shexp", n, m.shared)
	h := g.Buffer("ffn_shexp_glu", m.shared)
	if m.ungated && !g.has("ffn_gate_shexp.weight") {
		g.Add(&ops.Unary{Act: m.act, In: up, Out: h})
	} else {
		g.combine(m, m.sharedCapped, g.linear("ffn_gate_shexp", n, m.shared), up, h)
	}
	y := g.linear("ffn_down_shexp", h, g.embd)
	if m.sharedGate {
		gate := g.linear("ffn_gate_inp_shexp", n, 1)
		g.Add(&ops.Unary{Act: ops.Sigmoid, In: gate, Out: gate})
		g.Add(&ops.Binary{Kind: ops.MulKind, A: y, B: gate, Out: y})
	}
	return y
}

// expertLinear multiplies by the chosen experts' matrices of a stack; rows of 0 takes
// what the file has.
func (g *graph) expertLinear(m moe, name string, ids, in ops.View, cols, rows int) ops.View {
	full, n := g.blk(name+".weight"), m.stack(g)
	w := g.weight(full, cols, rows, n)
	if w == nil {
		g.fail("tensor %q is missing or unusable", full)
		w = &ops.Weight{Name: full, Cols: cols, Rows: max(rows, 1), Experts: n}
	}
	out := g.Buffer(name, w.Rows*ids.Width)
	g.Add(&ops.ExpertMatMul{W: w, Bias: g.weight(bias(full), w.Rows, n, 1), IDs: ids, In: in, Out: out})
	return out
}

// needGating reports a file without expert_gating_func.
func (g *graph) needGating() {
	if g.gatingFunc == 0 {
		g.fail("key %q is missing", g.key("expert_gating_func"))
	}
}

// sparse is a mixture of experts, or the plain network in a leading dense layer.
func (g *graph) sparse(m moe, n ops.View) ops.View {
	if g.il < g.denseLead {
		return g.glu(m.act, g.width(), n)
	}
	return g.mixture(m, n)
}

// routed is a mixture of experts where the layer has a router, else the plain network. A
// layer may have both networks and uses the mixture.
func (g *graph) routed(m moe, n ops.View) ops.View {
	if !g.has("ffn_gate_inp.weight") {
		return g.glu(m.act, g.width(), n)
	}
	g.spare("ffn_gate.weight", "ffn_up.weight", "ffn_down.weight")
	return g.mixture(m, n)
}

// experts is the pre-norm decoder with a mixture in every layer but the leading dense
// ones; mix says which, layer by layer.
func experts(g *graph, a attention, mix func() moe) error {
	ff := func(n ops.View) ops.View { return g.sparse(mix(), n) }
	g.head(g.decode(g.embed(1), func() attention { return a }, ff))
	return nil
}
