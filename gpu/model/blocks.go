package model

import (
	"math"

	"ganglion/gpu/ops"
)

// attention is one layer's self-attention as a family wants it; Q/K norms, biases,
// sinks and a fused QKV matrix are used where the file has them.
type attention struct {
	table  int     // RoPE table, -1 for none
	neox   bool    // rotation of halves instead of pairs
	scale  float64 // 0: 1/√keyLen, or the file's attention.scale
	window int     // 0: every earlier position

	keyLen, valueLen int          // widths of a head, 0: the file's
	clamp            float64      // q, k and v are limited to ±clamp; 0 = not
	softcap          float64      // of the scores, 0 = none
	normLate         bool         // Q/K norms come after the rotation
	temperature      ops.PosScale // of q; no Floor: none
}

// attend runs attention over the normalised input and returns the heads' outputs
// before the output projection: [rows, heads·valueLen].
func (g *graph) attend(a attention, n ops.View) ops.View {
	heads, kvHeads := g.heads[g.il], g.kvHeads[g.il]
	if heads < 1 || kvHeads < 1 {
		g.fail("layer %d has %d heads and %d KV heads", g.il, heads, kvHeads)
		return n
	}
	if a.keyLen == 0 {
		a.keyLen, a.valueLen = g.keyLen, g.valueLen
	}
	q, k, v := g.project(n, heads*a.keyLen, kvHeads*a.keyLen, kvHeads*a.valueLen)
	if a.clamp > 0 {
		for _, x := range []ops.View{q, k, v} {
			g.Add(&ops.Scale{Factor: 1, Clamp: float32(a.clamp), In: x, Out: x})
		}
	}
	q, k = g.position(a, "attn_q_norm", q), g.position(a, "attn_k_norm", k)
	if a.temperature.Floor > 0 {
		t := a.temperature
		t.In, t.Out = q, q
		g.Add(&t)
	}
	cache := g.Cache(ops.Cache{Name: g.blk("kv"), KVHeads: kvHeads, KeyDim: a.keyLen, ValueDim: a.valueLen, Window: a.window})
	g.Add(&ops.KVStore{Cache: cache, K: k, V: v})
	out := g.Buffer("attn", heads*a.valueLen)
	g.Add(&ops.Attention{Cache: cache, Heads: heads, Scale: g.scoreScale(a), Window: a.window, Softcap: float32(a.softcap),
		Sinks: g.optional(g.blk("attn_sinks.weight"), heads), Q: q, Out: out})
	return out
}

// position normalises the heads of q or k and rotates them.
func (g *graph) position(a attention, norm string, v ops.View) ops.View {
	if !a.normLate {
		v = g.headNorm(norm, a.keyLen, v)
	}
	if a.table >= 0 {
		v = g.RoPE(a.table, a.keyLen, a.neox, v)
	}
	if a.normLate {
		v = g.headNorm(norm, a.keyLen, v)
	}
	return v
}

// scoreScale is the factor of the scores.
func (g *graph) scoreScale(a attention) float32 {
	switch {
	case a.scale != 0:
		return float32(a.scale)
	case g.attnScale != 0:
		return float32(g.attnScale)
	}
	return float32(1 / math.Sqrt(float64(a.keyLen)))
}

// project makes q, k and v, from one fused matrix (order Q|K|V) if there is one.
func (g *graph) project(n ops.View, qw, kw, vw int) (q, k, v ops.View) {
	name := g.blk("attn_qkv.weight")
	if w := g.weight(name, n.Width, qw+kw+vw, 1); w != nil {
		qkv := g.MatMul("attn_qkv", w, g.optional(bias(name), qw+kw+vw), n)
		return qkv.Cols(0, qw), qkv.Cols(qw, kw), qkv.Cols(qw+kw, vw)
	}
	return g.linear("attn_q", n, qw), g.linear("attn_k", n, kw), g.linear("attn_v", n, vw)
}

// headNorm applies RMSNorm where the file has the weight: to every head alone when the
// weight is one head wide or has a row for each head, to all heads together when it is
// as wide as they are.
func (g *graph) headNorm(name string, head int, v ops.View) ops.View {
	full := g.blk(name + ".weight")
	w := g.weight(full, 0, 0, 1)
	switch {
	case w == nil:
		return v
	case w.Cols == head && (w.Rows == 1 || w.Rows*head == v.Width):
		return g.RMSNorm(name, w, g.eps, head, v)
	case w.Cols == v.Width && w.Rows == 1:
		return g.RMSNorm(name, w, g.eps, 0, v)
	}
	g.fail("tensor %q is [%d, %d], want the %d columns of a head or all %d", full, w.Cols, w.Rows, head, v.Width)
	return v
}

// feedForward is the gated feed-forward network, or a mixture of experts where the
// layer has a router.
func (g *graph) feedForward(act ops.Act, n ops.View) ops.View {
	if _, ok := g.src.Tensor(g.blk("ffn_gate_inp.weight")); ok && g.experts > 0 {
		return g.mixture(moe{act: act, norm: true}, n)
	}
	ff := g.ff[g.il]
	if ff < 1 {
		g.fail("layer %d: feed_forward_length is missing", g.il)
		return n
	}
	gate := g.linear("ffn_gate", n, ff)
	up := g.linear("ffn_up", n, ff)
	return g.linear("ffn_down", g.GLU("ffn_glu", act, gate, up), g.embd)
}

// outputs drops all but the output rows after the last layer's attention: what
// follows is only needed where logits are wanted.
func (g *graph) outputs(vs ...*ops.View) {
	if g.il != g.blocks-1 {
		return
	}
	for _, v := range vs {
		*v = g.Outputs(*v)
	}
}

// decode runs the layers of the decoder most families are: a norm before attention and
// one before the feed-forward network, each branch added to the stream. attn and ffn
// are asked once a layer, with g.il set.
func (g *graph) decode(x ops.View, attn func() attention, ffn func(n ops.View) ops.View) ops.View {
	for g.il = 0; g.il < g.blocks; g.il++ {
		h := g.attend(attn(), g.norm("attn_norm", x))
		g.outputs(&h, &x)
		x = g.Sum("attn_residual", g.linear("attn_output", h, g.embd), x)
		x = g.Sum("ffn_residual", ffn(g.norm("ffn_norm", x)), x)
	}
	return x
}
