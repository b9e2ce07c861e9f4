package model

import "ganglion/gpu/ops"

// plain describes a decoder of equal layers by its differences from the first Llama:
// RMSNorm before attention and before a gated feed-forward network, RoPE over pairs.
// What tensors tell (biases, a fused QKV or gate and up, Q/K norms, a tied head,
// experts with a router) needs no word here.
type plain struct {
	kind     normKind
	rope     rotation
	factors  bool     // the frequencies have the file's divisors where it has them
	sections sections // of M-RoPE
	visual   bool     // M-RoPE over halves where the file has sections, for images; text models have none
	deep     bool     // Deepstack where the file says so, with pictures
	act      ops.Act
	ungated  bool
	learned  bool // learned positions are required; where a file has them they are used anyway
	bare     bool // norms have no weights

	// tune changes what is particular, once for all layers.
	tune func(g *graph, l *layer)
}

// rotation says which columns of a head a plain family's RoPE pairs.
type rotation uint8

const (
	ofPairs  rotation = iota // (2i, 2i+1)
	ofHalves                 // (i, i + n/2)
	noRoPE
)

func (p plain) build(g *graph) error {
	g.kind = p.kind
	if p.deep {
		g.deepstack()
	}
	x := g.embed(1)
	if _, ok := g.src.Tensor("token_embd_norm.weight"); ok {
		x = g.normNamed("token_embd_norm", x) // BLOOM
	}
	if _, ok := g.src.Tensor(positionTable); ok || p.learned {
		x = g.positions(x)
	}
	l := preNorm(p.attention(g), p.feedForward(g))
	if p.tune != nil {
		p.tune(g, &l)
	}
	if p.bare {
		l.attnNorm, l.ffNorm = bare, bare
	}
	x = g.layers(x, func() layer { return l })
	if p.bare {
		g.logits(1, g.normed(bare, x))
	} else {
		g.head(x)
	}
	return nil
}

func (p plain) attention(g *graph) attention {
	if p.visual && g.mrope() {
		p.rope, p.sections = ofHalves, contiguous
	}
	a := attention{table: -1, neox: p.rope == ofHalves}
	if p.rope != noRoPE {
		a.table = g.rope(ropeSpec{factors: p.factors, sections: p.sections})
	}
	return a
}

func (p plain) feedForward(g *graph) func(ops.View) ops.View {
	if p.ungated {
		return func(n ops.View) ops.View { return g.mlp(p.act, n) }
	}
	return func(n ops.View) ops.View { return g.feedForward(p.act, n) }
}

// The particulars of plain families, each named after what it is.

// needQKNorm requires the norms of q and k.
func needQKNorm(_ *graph, l *layer) { l.attn.qkNorm = qkRequired }

// lateQKNorm has the norms of q and k after the rotation.
func lateQKNorm(_ *graph, l *layer) { l.attn.qkNorm, l.attn.normLate = qkRequired, true }

// clamped limits q, k and v where the file says so (OLMo).
func clamped(g *graph, l *layer) { l.attn.clamp = g.keys.float("attention.clamp_kqv", 0) }

// earlyScale multiplies q instead of the scores (Phi-3).
func earlyScale(_ *graph, l *layer) { l.attn.early = true }

// postAttentionNorm is Seed-OSS's name of the norm before the feed-forward network.
func postAttentionNorm(_ *graph, l *layer) { l.ffNorm = "post_attention_norm" }

// sandwich puts a norm behind both branches as well (GLM-4).
func sandwich(_ *graph, l *layer) { l.attnPost, l.ffPost = "post_attention_norm", "post_ffw_norm" }

// alibi is attention with the biases of BLOOM and Refact.
func alibi(_ *graph, l *layer) { l.attn.alibi = 8 }

// maxBias takes the largest bias by distance and the clamp from the file (MPT).
func maxBias(g *graph, l *layer) {
	clamped(g, l)
	l.attn.alibi = g.keys.positive("attention.max_alibi_bias", 0)
}

// jaisScores scales by 1/d instead of 1/√d.
func jaisScores(g *graph, l *layer) {
	maxBias(g, l)
	l.attn.scale = 1 / float64(max(g.keyLen, 1))
}

// temperature scales q by position (Ministral 3).
func temperature(g *graph, l *layer) {
	if t := g.keys.float("attention.temperature_scale", 0); t != 0 {
		l.attn.temperature = ops.PosScale{Floor: float32(g.scaling.origContext), Scale: float32(t)}
	}
}
