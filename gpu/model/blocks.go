package model

import (
	"math"

	"ganglion/gpu/ops"
)

// attention is one layer's self-attention as a family wants it; Q/K norms, biases
// and a fused QKV matrix are used where the file has them.
type attention struct {
	table  int     // RoPE table, -1 for none
	neox   bool    // rotation of halves instead of pairs
	scale  float64 // 0: 1/√keyLen, or the file's attention.scale
	window int     // 0: every earlier position
}

// attend runs attention over the normalised input and returns the heads' outputs
// before the output projection: [rows, heads·valueLen].
func (g *graph) attend(a attention, n ops.View) ops.View {
	heads, kvHeads := g.heads[g.il], g.kvHeads[g.il]
	if heads < 1 || kvHeads < 1 {
		g.fail("layer %d has %d heads and %d KV heads", g.il, heads, kvHeads)
		return n
	}
	q, k, v := g.project(n, heads*g.keyLen, kvHeads*g.keyLen, kvHeads*g.valueLen)
	q = g.headNorm("attn_q_norm", q)
	k = g.headNorm("attn_k_norm", k)
	if a.table >= 0 {
		q = g.RoPE(a.table, g.keyLen, a.neox, q)
		k = g.RoPE(a.table, g.keyLen, a.neox, k)
	}
	cache := g.Cache(ops.Cache{Name: g.blk("kv"), KVHeads: kvHeads, KeyDim: g.keyLen, ValueDim: g.valueLen, Window: a.window})
	g.Add(&ops.KVStore{Cache: cache, K: k, V: v})
	scale := a.scale
	if scale == 0 {
		scale = g.attnScale
	}
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(g.keyLen))
	}
	out := g.Buffer("attn", heads*g.valueLen)
	g.Add(&ops.Attention{Cache: cache, Heads: heads, Scale: float32(scale), Window: a.window,
		Sinks: g.optional(g.blk("attn_sinks.weight"), heads), Q: q, Out: out})
	return out
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

// headNorm applies RMSNorm to every head where the file has the weight.
func (g *graph) headNorm(name string, v ops.View) ops.View {
	w := g.optional(g.blk(name+".weight"), g.keyLen)
	if w == nil {
		return v
	}
	return g.RMSNorm(name, w, g.eps, g.keyLen, v)
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
