package model

import (
	"cmp"

	"ganglion/gpu/ops"
)

// layer is one decoder layer as a family wants it: attention and feed-forward, two
// branches that are added to the residual stream.
type layer struct {
	attn attention
	ff   func(n ops.View) ops.View

	// mix stands in the place of attention where it is set (recurrent layers, MLA). It
	// returns what the projection named out reads ("": attn_output).
	mix func(n ops.View) ops.View
	out string

	// Norms of the branches' inputs and outputs: a name, "" for none, or bare.
	attnNorm, ffNorm string
	attnPost, ffPost string
	postEps          float32 // epsilon of the output norms where it is not the file's
	heads            string  // norm of the heads' outputs, before the output matrix

	// parallel lets both branches read the layer's input; without ffNorm the
	// feed-forward reads what the attention reads.
	parallel bool
	branch   float64 // factor of both branches, 0 = 1
}

// preNorm is the layer most families have.
func preNorm(a attention, ff func(ops.View) ops.View) layer {
	return layer{attn: a, ff: ff, attnNorm: "attn_norm", ffNorm: "ffn_norm"}
}

// decode runs the layers of the decoder most families are; attn is asked once a
// layer, with g.il set.
func (g *graph) decode(x ops.View, attn func() attention, ff func(n ops.View) ops.View) ops.View {
	return g.alike(x, preNorm(attention{}, ff), attn)
}

// alike runs layers that differ in their attention alone.
func (g *graph) alike(x ops.View, l layer, attn func() attention) ops.View {
	return g.layers(x, func() layer {
		l.attn = attn()
		return l
	})
}

// layers runs the residual stream through all layers; of describes layer g.il.
func (g *graph) layers(x ops.View, of func() layer) ops.View {
	for g.il = 0; g.il < g.blocks; g.il++ {
		x = g.step(of(), x)
		if g.il < g.deep {
			g.Add(&ops.Deepstack{Slice: g.il + 1, In: x, Out: x})
		}
	}
	return x
}

// deepstack lets the first layers add slices of the input embedding, as many as the file
// says (Qwen3-VL).
func (g *graph) deepstack() {
	g.deep = g.keys.dim("n_deepstack_layers", 0)
	if g.deep > g.blocks {
		g.fail("key %q: %d of %d layers", g.key("n_deepstack_layers"), g.deep, g.blocks)
		g.deep = 0
	}
}

// step adds one layer.
func (g *graph) step(l layer, x ops.View) ops.View {
	n := g.normed(l.attnNorm, x)
	h := g.mixed(l, n)
	shared := l.parallel && l.ffNorm == ""
	if shared {
		g.outputs(&h, &x, &n)
	} else {
		g.outputs(&h, &x)
	}
	h = g.leave(l, l.attnPost, g.linear(cmp.Or(l.out, "attn_output"), g.normed(l.heads, h), g.embd))
	if !l.parallel {
		x = g.Sum("attn_residual", h, x)
		f := g.leave(l, l.ffPost, l.ff(g.normed(l.ffNorm, x)))
		return g.Sum("ffn_residual", f, x)
	}
	if !shared {
		n = g.normed(l.ffNorm, x)
	}
	f := g.leave(l, l.ffPost, l.ff(n))
	return g.Sum("residual", g.Sum("branches", f, h), x)
}

// mixed is what the layer does over positions, without its output projection.
func (g *graph) mixed(l layer, n ops.View) ops.View {
	if l.mix != nil {
		return l.mix(n)
	}
	return g.attend(l.attn, n)
}

// leave is the end of a branch: its output norm and factor.
func (g *graph) leave(l layer, norm string, v ops.View) ops.View {
	if norm != "" {
		eps, layerEps := g.eps, g.layerEps
		if l.postEps != 0 {
			g.eps, g.layerEps = l.postEps, l.postEps
		}
		v = g.normed(norm, v)
		g.eps, g.layerEps = eps, layerEps
	}
	return g.scaled(l.branch, v)
}

// scaled multiplies in place; 0 and 1 change nothing.
func (g *graph) scaled(factor float64, v ops.View) ops.View {
	if factor != 0 && factor != 1 {
		g.Add(&ops.Scale{Factor: float32(factor), In: v, Out: v})
	}
	return v
}

// outputs drops all but the output rows after the last layer's attention: what
// follows is only needed where logits are wanted.
func (g *graph) outputs(vs ...*ops.View) {
	if g.il != g.last {
		return
	}
	for _, v := range vs {
		*v = g.Outputs(*v)
	}
}

// width is the layer's feed_forward_length.
func (g *graph) width() int {
	if g.ff[g.il] < 1 {
		g.fail("key %q: layer %d has no width", g.key("feed_forward_length"), g.il)
		return 1
	}
	return g.ff[g.il]
}

// feedForward is the gated feed-forward network, or the mixture of experts of
// Mixtral where the layer has a router.
func (g *graph) feedForward(act ops.Act, n ops.View) ops.View {
	if g.experts > 0 && g.has("ffn_gate_inp.weight") {
		return g.mixture(moe{act: act, norm: true}, n)
	}
	return g.glu(act, g.width(), n)
}

// glu is down(act(gate·n) ⊙ up·n). A file without ffn_gate has gate and up, in
// this order, in one matrix ffn_up.
func (g *graph) glu(act ops.Act, ff int, n ops.View) ops.View {
	return g.linear("ffn_down", g.gated(act, ff, n), g.embd)
}

// gated is act(gate·n) ⊙ up·n.
func (g *graph) gated(act ops.Act, ff int, n ops.View) ops.View {
	var gate, up ops.View
	if t, ok := g.src.Tensor(g.blk("ffn_up.weight")); ok && t.Rows() == 2*ff && !g.has("ffn_gate.weight") {
		both := g.linear("ffn_up", n, 2*ff)
		gate, up = both.Cols(0, ff), both.Cols(ff, ff)
	} else {
		gate, up = g.linear("ffn_gate", n, ff), g.linear("ffn_up", n, ff)
	}
	return g.GLU("ffn_glu", act, gate, up)
}

// mlp is down(act(up·n)), the feed-forward network without a gate. Its hidden
// columns are divided by ffn.act.scales where the file has them (MPT with AWQ).
func (g *graph) mlp(act ops.Act, n ops.View) ops.View {
	up := g.linear("ffn_up", n, g.width())
	g.Add(&ops.Unary{Act: act, In: up, Out: up})
	if g.has("ffn.act.scales") {
		g.Add(&ops.AddVec{W: g.reciprocal(g.blk("ffn.act.scales"), up.Width), Mul: true, In: up, Out: up})
	}
	return g.linear("ffn_down", up, g.embd)
}

// embed starts the forward pass: token rows × scale. It fixes the vocabulary. A
// file without token_embd has it in output (CodeShell).
func (g *graph) embed(scale float32) ops.View {
	name := "token_embd.weight"
	if _, ok := g.src.Tensor(name); !ok {
		if _, ok := g.src.Tensor("output.weight"); ok {
			name = "output.weight"
		}
	}
	table := g.required(name, g.weight(name, g.embd, 0, 1), g.embd, 1)
	g.vocab = table.Rows
	g.Plan.Vocab, g.Plan.Embed, g.Plan.Slices, g.Plan.Context = table.Rows, g.embd, g.deep, g.context
	return g.Embed(table, scale)
}

// positionTable holds learned positions, one row each.
const positionTable = "position_embd.weight"

// positions adds learned positions to the embeddings.
func (g *graph) positions(x ops.View) ops.View {
	pos := g.Buffer("positions", g.embd)
	g.Add(&ops.Embed{Table: g.matrix(positionTable, g.embd, g.context), Scale: 1, ByPosition: true, Out: pos})
	return g.Sum("embed_positions", x, pos)
}

// head ends the forward pass: final norm and logits. x must already be per output.
func (g *graph) head(x ops.View) { g.logits(1, g.normNamed("output_norm", x)) }

// logits multiplies by the output matrix (tied to the embedding when the file has
// none) and by a scale, then caps.
func (g *graph) logits(scale float64, x ops.View) {
	w := g.weight("output.weight", g.embd, g.vocab, 1)
	if w == nil {
		w = g.matrix("token_embd.weight", g.embd, g.vocab)
	}
	logits := g.scaled(scale, g.apply("logits", w, g.biasOf("output.weight", g.vocab), x))
	if g.finalSoftcap > 0 {
		g.Add(&ops.Softcap{Cap: float32(g.finalSoftcap), In: logits, Out: logits})
	}
	g.Plan.Logits = logits
}
