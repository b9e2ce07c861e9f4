package encoder

import (
	"fmt"
	"math"

	"ganglion/gpu/ops"
)

// layers describes the transformer of a tower: every row sees every other one, or those
// of its window. What a layer has (one matrix for queries, keys and values or three, norms
// of heads, norms behind the branches, scales, a gate) the file tells.
type layers struct {
	scale  float32                     // of scores; 0 = 1/√head
	normV  bool                        // RMSNorm without weight over the heads of values
	rotate func(v ops.View) ops.View   // nil: no rotation
	local  func(layer int) bool        // layers that see their window (span 2); nil: none
	after  func(layer int, x ops.View) // what looks at a layer's result
}

// vit adds all layers.
func (g *graph) vit(x ops.View, o layers) ops.View {
	g.cache = g.Cache(ops.Cache{Name: "layer", KVHeads: g.heads, KeyDim: g.headDim, ValueDim: g.headDim})
	g.Plan.Spans = 1
	if o.local != nil {
		g.Plan.Spans = 2
	}
	for il := range g.layers {
		blk := fmt.Sprintf("%sblk.%d.", g.prefix, il)
		branch := g.attention(blk, g.norm(blk+"ln1", x), il, o)
		x = g.Sum("x", x, g.behind(blk+"attn_post_norm", blk+"ls1.weight", branch))
		branch = g.feedForward(blk, g.norm(blk+"ln2", x))
		x = g.Sum("x", x, g.behind(blk+"ffn_post_norm", blk+"ls2.weight", branch))
		if o.after != nil {
			o.after(il, x)
		}
	}
	return x
}

// behind applies a branch's own norm and scale, where the file has them.
func (g *graph) behind(norm, scale string, v ops.View) ops.View {
	if g.has(norm + ".weight") {
		v = g.norm(norm, v)
	}
	if w := g.weight(scale, v.Width, 1); w != nil {
		g.Add(&ops.AddVec{W: w, Mul: true, In: v, Out: v})
	}
	return v
}

func (g *graph) attention(blk string, n ops.View, il int, o layers) ops.View {
	var q, k, v ops.View
	if g.has(blk + "attn_qkv.weight") {
		qkv := g.linear(blk+"attn_qkv", n, 3*g.width)
		q, k, v = qkv.Cols(0, g.width), qkv.Cols(g.width, g.width), qkv.Cols(2*g.width, g.width)
	} else {
		q, k, v = g.linear(blk+"attn_q", n, g.width), g.linear(blk+"attn_k", n, g.width), g.linear(blk+"attn_v", n, g.width)
	}
	q, k = g.headNorm(blk+"attn_q_norm", q), g.headNorm(blk+"attn_k_norm", k)
	if o.normV {
		v = g.RMSNorm("v_norm", nil, g.eps, g.headDim, v)
	}
	if o.rotate != nil {
		q, k = o.rotate(q), o.rotate(k)
	}
	a := &ops.Attention{Cache: g.cache, Heads: g.heads, Scale: o.scale, Span: 1, Q: q, Out: g.Buffer("attended", g.width)}
	if a.Scale == 0 {
		a.Scale = float32(1 / math.Sqrt(float64(g.headDim)))
	}
	if o.local != nil && o.local(il) {
		a.Span = 2
	}
	g.Add(&ops.KVStore{Cache: g.cache, K: k, V: v})
	g.Add(a)
	return g.linear(blk+"attn_out", a.Out, g.width)
}

// headNorm is RMSNorm with the weight of one head or of all, where the file has it.
func (g *graph) headNorm(name string, v ops.View) ops.View {
	d := g.dims(name + ".weight")
	if d == nil {
		return v
	}
	if d[0] == g.headDim {
		return g.RMSNorm(name, g.matrix(name+".weight", g.headDim, 1), g.eps, g.headDim, v)
	}
	return g.norm(name, v)
}

// feedForward is down(act(gate)·up) or down(act(up)). Old files have the names of up and
// down the wrong way round, which shows in the width that down takes.
func (g *graph) feedForward(blk string, n ops.View) ops.View {
	up, down := blk+"ffn_up", blk+"ffn_down"
	if d := g.dims(down + ".weight"); d != nil && d[0] == g.width && d[1] != g.width {
		up, down = down, up
	}
	h := g.linear(up, n, 0)
	if g.has(blk + "ffn_gate.weight") {
		h = g.GLU("ffn", g.act, g.linear(blk+"ffn_gate", n, h.Width), h)
	} else {
		h = g.activate(g.act, h)
	}
	return g.linear(down, h, g.width)
}
