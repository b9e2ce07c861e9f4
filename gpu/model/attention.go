package model

import (
	"cmp"
	"fmt"
	"math"

	"ganglion/gpu/ops"
)

// attention is one layer's self-attention as a family wants it. What tensors tell
// is taken by presence: biases, a fused QKV matrix, sinks. Zero values take what
// the file says for global layers.
type attention struct {
	table   int     // RoPE table, -1 for none
	neox    bool    // rotation of halves instead of pairs
	scale   float64 // of the scores; 0: attention.scale, else 1/√keyLen
	early   bool    // q is multiplied by the scale, not the scores: another rounding where keys are halves
	window  int     // 0: every earlier position
	chunked bool    // the window is a chunk of positions, see ops.Attention
	softcap float64 // of the scores, 0 = none
	alibi   float64 // largest bias by distance, 0 = none
	ahead   bool    // rows of a picture see to its end
	clamp   float64 // q, k and v are limited to ±clamp, 0 = not

	qkNorm      qkNorm
	normLate    bool         // q and k are normalised after the rotation
	temperature ops.PosScale // of q; no Floor: none
	layout      qkvLayout
	gate        string  // matrix whose activation multiplies the heads' outputs, by column or by head
	queryGate   bool    // a sigmoid gate comes with the query: attn_q has [q | gate] for each head
	gateAct     ops.Act // of the gate; Identity stands for Sigmoid
	outScale    float64 // of the heads' outputs, 0 = 1

	keyLen, valueLen int // of a head; 0: attention.key_length, value_length
}

// qkNorm says whether the heads of q and k are normalised. The weights' shapes tell
// over what: one head wide, or a row per head: each head alone; as wide as all
// heads: all of them together; one value per head: each head alone, times its value.
type qkNorm uint8

const (
	qkByPresence qkNorm = iota // where the file has the weight for q; k goes with it
	qkRequired                 // weights are required
	qkAlways                   // without weights where the file has none
)

// qkvLayout says how q, k and v lie in a fused matrix.
type qkvLayout uint8

const (
	qkvPacked qkvLayout = iota // q|k|v and nothing else
	qkvLoose                   // q|k|v at the start of a matrix that may be taller
	qkvThirds                  // q, k and v a width of the stream apart
)

// attend runs attention over the normalised input and returns the heads' outputs
// before the output projection: [rows, heads·valueLen].
func (g *graph) attend(a attention, n ops.View) ops.View {
	heads, kvHeads := g.heads[g.il], g.kvHeads[g.il]
	if heads < 1 || kvHeads < 1 {
		g.fail("keys %q and %q: layer %d has %d heads and %d KV heads", g.key("attention.head_count"),
			g.key("attention.head_count_kv"), g.il, heads, kvHeads)
		return n
	}
	a = g.sized(a)
	q, k, v := g.project(a, n)
	var gate ops.View
	if a.queryGate {
		q, gate = g.gatedQuery(a, q)
	}
	q, k = g.position(a, "attn_q_norm", q), g.position(a, "attn_k_norm", k)
	if t := a.temperature; t.Floor > 0 {
		t.In, t.Out = q, q
		g.Add(&t)
	}
	a = g.scaleEarly(a, q)
	out := g.look(a, g.keep(a, k, v), q)
	if a.gate != "" {
		g.gateHeads(a, n, out)
	}
	if a.queryGate {
		g.multiply(g.sigmoid(gate), out)
	}
	return g.scaled(a.outScale, out)
}

// gatedQuery takes the product of attn_q apart.
func (g *graph) gatedQuery(a attention, both ops.View) (q, gate ops.View) {
	heads, n := g.heads[g.il], a.keyLen
	q, gate = g.Buffer("attn_q_part", heads*n), g.Buffer("attn_gate_part", heads*n)
	g.blocksOf(heads, n, both, 2*n, q, n)
	g.blocksOf(heads, n, both.Cols(n, (2*heads-1)*n), 2*n, gate, n)
	return q, gate
}

// sized fills in the head widths of the file.
func (g *graph) sized(a attention) attention {
	if a.keyLen == 0 {
		a.keyLen = g.keyLen
	}
	if a.valueLen == 0 {
		a.valueLen = g.valueLen
	}
	return a
}

// sliding is a global attention turned into a local one: the file's window and its
// head widths for local layers, with a table of its own.
func (g *graph) sliding(a attention, table int) attention {
	a.table, a.window, a.keyLen, a.valueLen = table, g.window, g.keyLenSWA, g.valueLenSWA
	return a
}

// needWindow reports a family's missing sliding window.
func (g *graph) needWindow() {
	if g.window < 1 {
		g.fail("key %q is missing or 0", g.key("attention.sliding_window"))
	}
}

// alternating gives local layers one attention and global layers another.
func (g *graph) alternating(local func(il, period int) bool, period int, near, far attention) func() attention {
	return func() attention {
		if local(g.il, period) {
			return near
		}
		return far
	}
}

// project makes q, k and v, from one fused matrix if there is one; its bias may
// also be in three parts.
func (g *graph) project(a attention, n ops.View) (q, k, v ops.View) {
	qw, kw, vw := g.heads[g.il]*a.keyLen, g.kvHeads[g.il]*a.keyLen, g.kvHeads[g.il]*a.valueLen
	if a.queryGate {
		qw *= 2
	}
	if !g.has("attn_qkv.weight") {
		q, k, v = g.linear("attn_q", n, qw), g.linear("attn_k", n, kw), g.linear("attn_v", n, vw)
	} else {
		q, k, v = g.split(a, n, qw, kw, vw)
	}
	if a.clamp > 0 {
		for _, v := range []ops.View{q, k, v} {
			g.Add(&ops.Scale{Factor: 1, Clamp: float32(a.clamp), In: v, Out: v})
		}
	}
	return q, k, v
}

// split multiplies by the fused matrix and cuts the product.
func (g *graph) split(a attention, n ops.View, qw, kw, vw int) (q, k, v ops.View) {
	name := g.blk("attn_qkv.weight")
	rows, kAt, vAt := qw+kw+vw, qw, qw+kw
	switch a.layout {
	case qkvLoose:
		rows = 0
	case qkvThirds:
		rows, kAt, vAt = 3*qw, g.embd, 2*g.embd
	}
	w := g.required(name, g.weight(name, n.Width, rows, 1), n.Width, vAt+vw)
	if w.Rows < vAt+vw {
		g.fail("tensor %q has %d rows, want at least %d", name, w.Rows, vAt+vw)
		w.Rows = vAt + vw
	}
	b := g.biasOf(name, w.Rows)
	qkv := g.apply("attn_qkv", w, b, n)
	q, k, v = qkv.Cols(0, qw), qkv.Cols(kAt, kw), qkv.Cols(vAt, vw)
	if kAt < qw || vAt < kAt+kw { // they share columns, and what follows works in place
		q, k, v = g.copied("q", q), g.copied("k", k), g.copied("v", v)
	}
	if b == nil {
		g.splitBiases(q, k, v)
	}
	return q, k, v
}

// splitBiases adds the biases of q, k and v where a fused matrix comes with all three;
// fewer are left out, as in the reference.
func (g *graph) splitBiases(q, k, v ops.View) {
	names := []string{"attn_q.bias", "attn_k.bias", "attn_v.bias"}
	for _, name := range names {
		if !g.has(name) {
			g.spare(names...)
			return
		}
	}
	for i, part := range []ops.View{q, k, v} {
		g.Add(&ops.AddVec{W: g.vector(g.blk(names[i]), part.Width), In: part, Out: part})
	}
}

// copied gives a view a buffer of its own.
func (g *graph) copied(name string, v ops.View) ops.View {
	out := g.Buffer(name, v.Width)
	g.Add(&ops.Scale{Factor: 1, In: v, Out: out})
	return out
}

// position normalises the heads of q or k and rotates them.
func (g *graph) position(a attention, norm string, v ops.View) ops.View {
	if !a.normLate {
		v = g.headNorm(a, norm, v)
	}
	if a.table >= 0 {
		v = g.RoPE(a.table, a.keyLen, a.neox, v)
	}
	if a.normLate {
		v = g.headNorm(a, norm, v)
	}
	return v
}

// headNorm is the norm of the heads of q or k; see qkNorm.
func (g *graph) headNorm(a attention, name string, v ops.View) ops.View {
	full, head := g.blk(name+".weight"), a.keyLen
	if a.qkNorm == qkByPresence && !g.has("attn_q_norm.weight") {
		g.spare("attn_k_norm.weight", "attn_k_norm.bias") // of use only beside one of q
		return v
	}
	w := g.weight(full, 0, 0, 1)
	switch {
	case w == nil && a.qkNorm == qkAlways:
		return g.normalize(name, nil, nil, head, v)
	case w == nil:
		g.required(full, nil, head, 1)
		return v
	case w.Cols == head && (w.Rows == 1 || w.Rows*head == v.Width):
		return g.normalize(name, w, nil, head, v)
	case w.Cols == v.Width && w.Rows == 1:
		return g.normalize(name, w, g.optional(bias(full), v.Width), 0, v)
	case w.Cols*w.Rows*head == v.Width:
		return g.normalize(name, g.perHead(w, head), nil, head, v)
	}
	g.fail("tensor %q is [%d, %d], want the %d columns of a head or all %d", full, w.Cols, w.Rows, head, v.Width)
	return v
}

// keep stores keys and values in the layer's cache and returns it.
func (g *graph) keep(a attention, k, v ops.View) int {
	name := g.blk("kv")
	if g.pass > 0 {
		name += fmt.Sprintf(".%d", g.pass)
	}
	cache := g.Cache(ops.Cache{Name: name, KVHeads: g.kvHeads[g.il], KeyDim: a.keyLen, ValueDim: a.valueLen, Window: a.window})
	g.Add(&ops.KVStore{Cache: cache, K: k, V: v})
	return cache
}

// look is the attention of q over a cache.
func (g *graph) look(a attention, cache int, q ops.View) ops.View {
	heads := g.heads[g.il]
	out := g.Buffer("attn", heads*a.valueLen)
	span := 0
	if a.ahead {
		span, g.Plan.Spans = 1, 1
	}
	g.Add(&ops.Attention{Cache: cache, Heads: heads, Span: span, Scale: g.scoreScale(a), Window: a.window, Chunked: a.chunked,
		Softcap: float32(a.softcap), ALiBi: float32(a.alibi),
		Sinks: g.optional(g.blk("attn_sinks.weight"), heads), Q: q, Out: out})
	return out
}

// scaleEarly multiplies q by the scale of the scores where the family does so. Powers
// of two round alike in either place and stay with the scores, which costs nothing.
func (g *graph) scaleEarly(a attention, q ops.View) attention {
	scale := float64(g.scoreScale(a))
	if frac, _ := math.Frexp(scale); a.early && frac != 0.5 {
		g.scaled(scale, q)
		a.scale = 1
	}
	return a
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

// gateHeads multiplies the heads' outputs by the activation of a projection of the
// input: one value per column, or one per head where the matrix has as many rows.
func (g *graph) gateHeads(a attention, n, out ops.View) {
	heads, rows := g.heads[g.il], out.Width
	if t, ok := g.src.Tensor(g.blk(a.gate + ".weight")); ok && t.Rows() == heads {
		rows = heads
	}
	gate := g.linear(a.gate, n, rows)
	g.Add(&ops.Unary{Act: cmp.Or(a.gateAct, ops.Sigmoid), In: gate, Out: gate})
	if rows == out.Width {
		g.Add(&ops.Binary{Kind: ops.MulKind, A: out, B: gate, Out: out})
		return
	}
	for h := range heads {
		v := out.Cols(h*a.valueLen, a.valueLen)
		g.Add(&ops.Binary{Kind: ops.MulKind, A: v, B: gate.Cols(h, 1), Out: v})
	}
}
