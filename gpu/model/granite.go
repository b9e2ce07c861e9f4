package model

import (
	"cmp"
	"math"
	"slices"

	"ganglion/gpu/ops"
)

// scales are Granite's factors of embeddings and branches and its divisor of logits.
type scales struct{ embed, branch, logits float64 }

// granite is Granite 3 and 4 without recurrent layers. rope.scaling.finetuned false
// means no RoPE.
func granite(g *graph) error {
	a := attention{table: -1}
	if g.keys.flag("rope.scaling.finetuned", true) {
		a.table = g.rope(ropeSpec{factors: true})
	}
	return graniteLayers(g, graniteScales(g), func(l *layer) { l.attn = a })
}

// graniteMoE is Granite's earlier mixture of experts, dense where there are none.
func graniteMoE(g *graph) error {
	a := attention{table: g.rope(ropeSpec{factors: true})}
	return graniteLayers(g, graniteScales(g), func(l *layer) { l.attn = a })
}

// graniteSWA is Granite with local layers, sinks and layers without RoPE, all as the
// file says.
func graniteSWA(g *graph) error {
	g.needWindow()
	if g.pattern == nil {
		g.fail("key %q is missing", g.key("attention.sliding_window_pattern"))
	}
	rotated := g.keys.pattern("attention.rope_pattern", g.blocks, true)
	if all, ok := g.src.Uint(g.key("attention.rope_pattern")); ok && rotated == nil {
		rotated = slices.Repeat([]bool{all != 0}, g.blocks)
	}
	global := attention{table: g.rope(ropeSpec{factors: true})}
	return graniteLayers(g, graniteScales(g), func(l *layer) {
		a := global
		if g.local(g.il, 0) {
			a = g.sliding(a, a.table)
		}
		if rotated != nil && !rotated[g.il] {
			a.table = -1
		}
		if !g.has("attn_sinks.weight") {
			g.fail("tensor %q is missing", g.blk("attn_sinks.weight"))
		}
		l.attn = a
	})
}

// graniteHybrid is Granite 4 with Mamba-2 layers (those without KV heads).
func graniteHybrid(g *graph) error {
	ssm := g.headed(g.readStateSpace(true))
	a := attention{table: -1}
	if g.keys.flag("rope.scaling.finetuned", true) {
		a = pairs(g)
	}
	s := scales{embed: g.keys.float("embedding_scale", 0), branch: g.keys.float("residual_scale", 0),
		logits: cmp.Or(g.keys.float("logit_scale", 0), 1)}
	return graniteLayers(g, s, func(l *layer) {
		l.attn = a
		if g.recurrentByHeads() {
			l.mix, l.out = func(n ops.View) ops.View { return g.mamba2(ssm, n) }, "ssm_out"
		}
	})
}

// minicpm is MiniCPM 1 and 2; files of the first converters have none of the scales.
func minicpm(g *graph) error {
	a := attention{table: g.rope(ropeSpec{factors: true})}
	s := scales{
		embed:  g.keys.float("embedding_scale", 12),
		branch: g.keys.float("residual_scale", 1.4/math.Sqrt(float64(g.blocks))),
		logits: g.keys.float("logit_scale", 256/float64(g.embd)),
	}
	return graniteLayers(g, s, func(l *layer) { l.attn = a })
}

func graniteScales(g *graph) scales {
	return scales{
		embed:  g.keys.float("embedding_scale", 0),
		branch: g.keys.float("residual_scale", 0),
		logits: g.keys.need("logit_scale"),
	}
}

// graniteLayers is the decoder of all of them; each completes the layer's description.
func graniteLayers(g *graph, s scales, each func(l *layer)) error {
	if s.logits == 0 {
		g.fail("key %q must not be 0", g.key("logit_scale"))
	}
	if s.embed == 0 {
		s.embed = 1
	}
	x := g.layers(g.embed(float32(s.embed)), func() layer {
		l := preNorm(attention{}, g.graniteFeedForward)
		l.branch = s.branch
		each(&l)
		return l
	})
	g.logits(1/s.logits, g.normNamed("output_norm", x))
	return nil
}

// graniteFeedForward is dense, or a softmax mixture with a shared expert.
func (g *graph) graniteFeedForward(n ops.View) ops.View {
	if g.experts > 0 && g.has("ffn_gate_inp.weight") {
		return g.mixture(moe{act: ops.SiLU, norm: true, shared: g.sharedFF}, n)
	}
	return g.glu(ops.SiLU, g.width(), n)
}
