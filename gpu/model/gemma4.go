package model

import (
	"math"

	"ganglion/gpu/ops"
)

// gemma4 is Gemma 4: norms before and behind the branches and on the heads of q, k and
// (without weight) v, local and global layers of their own widths, the last layers
// without keys and values of their own, embeddings for each layer (E2B, E4B), experts
// beside the dense network (26B), a scale on each layer's output.
func gemma4(g *graph) error {
	m := newGemma4(g)
	x := g.embed(float32(math.Sqrt(float64(g.embd))))
	each := m.layerInputs(x)
	for g.il = 0; g.il < g.blocks; g.il++ {
		if g.il == m.owners {
			// From here on layers read caches that are complete, so that only the
			// output rows are needed.
			g.last = g.il
			m.outputs(&x, &each)
		}
		h := m.attend(g.norm("attn_norm", x))
		if g.last != m.owners {
			m.outputs(&h, &x, &each)
		}
		h = g.norm("post_attention_norm", g.linear("attn_output", h, g.embd))
		x = g.Sum("attn_residual", h, x)
		x = g.Sum("ffn_residual", g.norm("post_ffw_norm", m.feedForward(x)), x)
		if each.Width > 0 {
			x = m.addLayerInput(x, each)
		}
		if w := g.optional(g.blk("layer_output_scale.weight"), 1); w != nil {
			x = g.addVector(w, true, x)
		}
	}
	g.head(x)
	return nil
}

// gemma4Graph is the forward pass under construction.
type gemma4Graph struct {
	*graph
	global, local attention
	owners        int   // layers with keys and values of their own, the first ones
	caches        []int // of layers so far
	perLayer      int   // width of a layer's own embedding, 0 = none
}

func newGemma4(g *graph) *gemma4Graph {
	m := &gemma4Graph{graph: g, perLayer: g.keys.dim("embedding_length_per_layer_input", 0)}
	m.owners = g.blocks - g.keys.dim("attention.shared_kv_layers", 0)
	if m.owners < 1 || (m.owners < 2 && m.owners < g.blocks) {
		g.fail("key %q: %d of %d layers have keys and values", g.key("attention.shared_kv_layers"), m.owners, g.blocks)
		m.owners = g.blocks
	}
	if m.perLayer > maxPerLayer {
		g.fail("key %q: %d is more than %d", g.key("embedding_length_per_layer_input"), m.perLayer, maxPerLayer)
		m.perLayer = 0
	}
	g.needWindow()
	g.finalSoftcap = g.keys.float("final_logit_softcapping", 30)
	if g.pattern == nil {
		g.fail("key %q is missing", g.key("attention.sliding_window_pattern"))
	}
	m.global = attention{table: g.rope(ropeSpec{factors: true}), neox: true, scale: 1, qkNorm: qkRequired}
	m.local = g.sliding(m.global, g.rope(ropeSpec{base: g.localBase(10000), dim: g.ropeDimSWA, unscaled: true}))
	m.local.ahead = g.embd != embdE2B && g.embd != embdE4B
	return m
}

// The rows of a picture see to its end in local layers, but not in the models E2B and
// E4B, which the reference knows by their widths, for the file does not say.
const (
	embdE2B = 1536
	embdE4B = 2560
)

// maxPerLayer bounds the width of a layer's embedding; published files have 256.
const maxPerLayer = 1 << 13

// outputs is graph.outputs for views that may be empty.
func (m *gemma4Graph) outputs(vs ...*ops.View) {
	for _, v := range vs {
		if v.Width > 0 {
			m.graph.outputs(v)
		}
	}
}

// attend is the attention of the current layer; v is k before its norm where the file
// has no attn_v.
func (m *gemma4Graph) attend(n ops.View) ops.View {
	g := m.graph
	a := m.global
	if g.local(g.il, 0) {
		a = m.local
	}
	a = g.sized(a)
	heads, kvHeads := g.heads[g.il], g.kvHeads[g.il]
	if heads < 1 || kvHeads < 1 {
		g.fail("keys %q and %q: layer %d has %d heads and %d KV heads", g.key("attention.head_count"),
			g.key("attention.head_count_kv"), g.il, heads, kvHeads)
		return n
	}
	qw, kw, vw := heads*a.keyLen, kvHeads*a.keyLen, kvHeads*a.valueLen
	var q, k, v ops.View
	fused := g.has("attn_qkv.weight")
	if fused {
		q, k, v = g.split(a, n, qw, kw, vw)
	} else {
		q = g.linear("attn_q", n, qw)
	}
	q = g.position(a, "attn_q_norm", q)
	if g.il >= m.owners {
		g.spare("attn_k.weight", "attn_v.weight", "attn_k_norm.weight")
		return g.look(a, m.share(a), q)
	}
	if !fused {
		k = g.linear("attn_k", n, kw)
		if v = k; g.has("attn_v.weight") {
			v = g.linear("attn_v", n, vw)
		}
	}
	v = g.normalize("attn_v_norm", nil, nil, a.valueLen, v)
	k = g.position(a, "attn_k_norm", k)
	cache := g.keep(a, k, v)
	m.caches = append(m.caches, cache)
	return g.look(a, cache, q)
}

// share is the cache that a layer without keys and values reads: that of the last owner
// when it is global, of the one before when it is local.
func (m *gemma4Graph) share(a attention) int {
	from := m.owners - 1
	if a.window > 0 {
		from--
	}
	if m.isLocal(from) != (a.window > 0) || m.kvHeads[from] != m.kvHeads[m.il] {
		m.fail("key %q: layer %d is to read the keys of layer %d, which is of another kind",
			m.key("attention.shared_kv_layers"), m.il, from)
	}
	if from >= len(m.caches) {
		return 0
	}
	return m.caches[from]
}

func (m *gemma4Graph) isLocal(il int) bool { return m.graph.local(il, 0) }

// feedForward is the dense network over the normalised input, and the experts where the
// layer has a router: both branches have norms of their own.
func (m *gemma4Graph) feedForward(x ops.View) ops.View {
	g := m.graph
	f := g.glu(ops.GELU, g.width(), g.norm("ffn_norm", x))
	if !g.has("ffn_gate_inp.weight") {
		return f
	}
	router := g.scaled(1/math.Sqrt(float64(g.embd)), g.normed(bare, x))
	router = g.addVector(g.vector(g.blk("ffn_gate_inp.scale"), g.embd), true, router)
	e := g.mixture(moe{act: ops.GELU, norm: true, router: g.linear("ffn_gate_inp", router, g.experts)}, g.norm("pre_ffw_norm_2", x))
	return g.Sum("ffn_out", g.norm("post_ffw_norm_1", f), g.norm("post_ffw_norm_2", e))
}

// layerInputs are the embeddings for each layer: rows of a table of their own and a
// projection of the embedding, averaged to [rows, layers·perLayer].
func (m *gemma4Graph) layerInputs(x ops.View) ops.View {
	if m.perLayer == 0 {
		return ops.View{}
	}
	g, width := m.graph, m.perLayer*m.blocks
	table := g.matrix("per_layer_token_embd.weight", width, g.vocab)
	own := g.Buffer("layer_embed", width)
	g.Add(&ops.Embed{Table: table, Scale: float32(math.Sqrt(float64(m.perLayer))), Out: own})
	p := g.MatMul("layer_proj", g.matrix("per_layer_model_proj.weight", g.embd, width), nil, x)
	p = g.scaled(1/math.Sqrt(float64(g.embd)), p)
	p = g.normalize("layer_proj_norm", g.vector("per_layer_proj_norm.weight", m.perLayer), nil, m.perLayer, p)
	return g.scaled(1/math.Sqrt2, g.Sum("layer_inputs", p, own))
}

// addLayerInput adds the layer's embedding behind a gate.
func (m *gemma4Graph) addLayerInput(x, each ops.View) ops.View {
	g := m.graph
	own := each.Cols(m.il*m.perLayer, m.perLayer)
	gate := g.multiply(own, g.activate(ops.GELU, g.linear("inp_gate", x, m.perLayer)))
	return g.Sum("layer_input_residual", x, g.norm("post_norm", g.linear("proj", gate, g.embd)))
}
