package model

import (
	"math"

	"ganglion/gpu/ops"
)

// latent is multi-head latent attention (DeepSeek 2, arXiv:2405.04434): keys and values
// of all heads come from one compressed vector, and a part of the key common to all
// heads is rotated.
type latent struct {
	rank     int // of the compressed keys and values
	qRank    int // of the compressed query, 0 = attn_q is one matrix
	plain    int // columns of a head that are not rotated
	rotated  int
	valueLen int // of a head
	table    int // RoPE table
	neox     bool
	scale    float64
	absorbed bool // the file has attn_k_b and attn_v_b, not attn_kv_b

	temperature ops.PosScale // of the query; no Floor: none
}

// maxLatent bounds ranks and widths of heads; the largest published are 1,536 and 256.
const maxLatent = 1 << 16

// readLatent reads the sizes. Files that hold attn_kv_b give the width of a whole head
// as key_length, the others as key_length_mla.
func (g *graph) readLatent() latent {
	m := latent{rank: g.keys.dim("attention.kv_lora_rank", -1), qRank: g.keys.dim("attention.q_lora_rank", 0),
		rotated: g.ropeDim, table: g.rope(ropeSpec{})}
	key, value := g.keys.dim("attention.key_length_mla", 0), g.keys.dim("attention.value_length_mla", 0)
	m.absorbed = key > 0 && value > 0
	if !m.absorbed {
		key, value = g.keyLen, g.valueLen
	}
	m.plain, m.valueLen = key-m.rotated, value
	if m.plain < 1 || m.rotated < 2 || value < 1 || key > maxLatent || value > maxLatent || m.rank < 1 || m.rank > maxLatent || m.qRank > maxLatent {
		g.fail("keys %q: heads of %d columns, %d of them rotated, values of %d, ranks %d and %d", g.key("attention.*"),
			key, m.rotated, value, m.rank, m.qRank)
		m.plain, m.rotated, m.valueLen, m.rank, m.absorbed = 1, 2, 1, 1, false
	}
	m.scale = 1 / math.Sqrt(float64(key))
	return m
}

// attendLatent is the mixer of the current layer; attn_output reads the result.
func (g *graph) attendLatent(m latent, n ops.View) ops.View {
	if g.heads[g.il] < 1 {
		g.fail("key %q: layer %d has no heads", g.key("attention.head_count"), g.il)
		return n
	}
	q := g.latentQuery(m, n)
	kv := g.linear("attn_kv_a_mqa", n, m.rank+m.rotated)
	c, tail := kv.Cols(0, m.rank), kv.Cols(m.rank, m.rotated)
	g.given(g.eps, "attention.layer_norm_rms_epsilon")
	g.Add(&ops.RMSNorm{W: g.vector(g.blk("attn_kv_a_norm.weight"), m.rank), Eps: g.eps, In: c, Out: c})
	g.rotate(m, 0, m.rotated, tail)
	if m.absorbed {
		return g.attendAbsorbed(m, q, kv)
	}
	return g.attendExpanded(m, q, c, tail)
}

// latentQuery is the query of all heads, [plain | rotated] each.
func (g *graph) latentQuery(m latent, n ops.View) ops.View {
	width := g.heads[g.il] * (m.plain + m.rotated)
	var q ops.View
	if m.qRank > 0 && !g.has("attn_q.weight") {
		q = g.linear("attn_q_b", g.norm("attn_q_a_norm", g.linear("attn_q_a", n, m.qRank)), width)
	} else {
		q = g.linear("attn_q", n, width)
	}
	return g.rotate(m, m.plain, m.plain+m.rotated, q)
}

// rotate rotates every head's columns from start on.
func (g *graph) rotate(m latent, start, head int, v ops.View) ops.View {
	if m.table >= 0 {
		g.Add(&ops.RoPE{Table: m.table, HeadDim: head, Start: start, NeoX: m.neox, In: v, Out: v})
	}
	return v
}

// warm applies the temperature of the query.
func (g *graph) warm(m latent, q ops.View) ops.View {
	if t := m.temperature; t.Floor > 0 {
		t.In, t.Out = q, q
		g.Add(&t)
	}
	return q
}

// attendAbsorbed maps each head's query into the compressed space (attn_k_b), so that
// all heads share one key of [compressed | rotated] whose first part is also the value,
// and maps what comes out to the head's own values (attn_v_b).
func (g *graph) attendAbsorbed(m latent, q, kv ops.View) ops.View {
	heads, head, key := g.heads[g.il], m.plain+m.rotated, m.rank+m.rotated
	up := g.Buffer("mla_q", heads*key)
	g.byHead("attn_k_b.weight", m.plain, m.rank, q, head, up, key)
	g.blocksOf(heads, m.rotated, q.Cols(m.plain, q.Width-m.plain), head, up.Cols(m.rank, up.Width-m.rank), key)
	cache := g.Cache(ops.Cache{Name: g.blk("kv"), KVHeads: 1, KeyDim: key, ValueDim: m.rank})
	g.Add(&ops.KVStore{Cache: cache, K: kv, V: kv.Cols(0, m.rank)})
	o := g.Buffer("mla", heads*m.rank)
	g.Add(&ops.Attention{Cache: cache, Heads: heads, Scale: float32(m.scale), Q: g.warm(m, up), Out: o})
	out := g.Buffer("attn", heads*m.valueLen)
	g.byHead("attn_v_b.weight", m.rank, m.valueLen, o, m.rank, out, m.valueLen)
	return out
}

// attendExpanded makes the keys and values of every head (attn_kv_b) and caches those.
func (g *graph) attendExpanded(m latent, q, c, tail ops.View) ops.View {
	heads, head, both := g.heads[g.il], m.plain+m.rotated, m.plain+m.valueLen
	kv := g.linear("attn_kv_b", c, heads*both)
	k := g.Buffer("mla_k", heads*head)
	g.blocksOf(heads, m.plain, kv, both, k, head)
	g.blocksOf(heads, m.rotated, tail, 0, k.Cols(m.plain, k.Width-m.plain), head)
	v := g.part("mla_v", kv, both, m.plain, m.valueLen)
	cache := g.Cache(ops.Cache{Name: g.blk("kv"), KVHeads: heads, KeyDim: head, ValueDim: m.valueLen})
	g.Add(&ops.KVStore{Cache: cache, K: k, V: v})
	out := g.Buffer("attn", heads*m.valueLen)
	g.Add(&ops.Attention{Cache: cache, Heads: heads, Scale: float32(m.scale), Q: g.warm(m, q), Out: out})
	return out
}

// byHead multiplies block i of in by matrix i of a stack with one for each head.
func (g *graph) byHead(name string, cols, rows int, in ops.View, from int, out ops.View, to int) {
	heads := g.heads[g.il]
	stack := g.read(g.blk(name), cols, rows, heads)
	if stack == nil {
		g.fail("tensor %q is missing or unusable", g.blk(name))
		return
	}
	for i := range heads {
		w := g.matrixOf(stack, i)
		g.Add(&ops.MatMul{W: w, In: in.Cols(i*from, cols), Out: out.Cols(i*to, rows)})
	}
}
