package model

import (
	"math"

	"ganglion/gpu/ops"
)

// The plain families, one row each; what a row does not say is as in Llama.
var (
	arcee      = plain{factors: true, act: ops.ReLU2, ungated: true}
	bloom      = plain{kind: layerNorm, rope: noRoPE, act: ops.GELU, ungated: true, tune: alibi}
	chatglm    = plain{act: ops.SiLU}
	codeshell  = plain{kind: layerNorm, rope: ofHalves, act: ops.GELU, ungated: true}
	exaone     = plain{rope: ofHalves, factors: true, act: ops.SiLU}
	glm4       = plain{act: ops.SiLU, visual: true, tune: sandwich}
	gpt2       = plain{kind: layerNorm, rope: noRoPE, act: ops.GELU, ungated: true, learned: true} // and StarCoder
	internlm2  = plain{act: ops.SiLU}                                                              // and Xverse
	jais       = plain{kind: layerNorm, rope: noRoPE, act: ops.SiLU, tune: jaisScores}
	llama      = plain{factors: true, act: ops.SiLU} // Llama 1 to 3.x, TinyLlama, SmolLM2, Mistral, Mixtral
	maincoder  = plain{act: ops.SiLU, tune: lateQKNorm}
	mistral3   = plain{factors: true, act: ops.SiLU, tune: temperature}
	mpt        = plain{kind: layerNorm, rope: noRoPE, act: ops.GELU, ungated: true, tune: maxBias}
	nemotron   = plain{kind: layerNorm, rope: ofHalves, act: ops.ReLU2, ungated: true} // and Jais 2
	olmo       = plain{kind: layerNorm, act: ops.SiLU, bare: true, tune: clamped}
	openelm    = plain{rope: ofHalves, act: ops.SiLU, tune: needQKNorm}
	orion      = plain{kind: layerNorm, rope: ofHalves, act: ops.SiLU}
	paddleocr  = plain{rope: ofHalves, sections: contiguous, act: ops.SiLU}
	pangu      = plain{rope: ofHalves, act: ops.SiLU}
	phi3       = plain{rope: ofHalves, factors: true, act: ops.SiLU, tune: earlyScale}
	pockettts  = plain{kind: layerNorm, act: ops.GELU, ungated: true}
	qwen2      = plain{rope: ofHalves, act: ops.SiLU}
	qwen3      = plain{rope: ofHalves, act: ops.SiLU, tune: needQKNorm}
	qwen3vl    = plain{rope: ofHalves, sections: interleaved, deep: true, act: ops.SiLU, tune: needQKNorm}
	seedOSS    = plain{rope: ofHalves, act: ops.SiLU, tune: postAttentionNorm}
	starcoder2 = plain{kind: layerNorm, rope: ofHalves, act: ops.GELU, ungated: true}
)

// ernie45 is the dense Ernie 4.5.
func ernie45(g *graph) error {
	g.unbiased = []string{"attn_output"}
	return internlm2.build(g)
}

// smollm3 is SmolLM3: every fourth layer has no RoPE.
func smollm3(g *graph) error {
	rotated := attention{table: g.rope(ropeSpec{})}
	return g.siluDecoder(func() attention {
		if (g.il+1)%4 == 0 {
			return attention{table: -1}
		}
		return rotated
	})
}

// baichuan is Baichuan: RoPE in the 7B model, ALiBi in the 13B one. The reference
// knows them by their depth, for the file does not say, and gives others neither.
func baichuan(g *graph) error {
	a := attention{table: -1}
	switch g.blocks {
	case 32:
		a.table = g.rope(ropeSpec{})
	case 40:
		a.alibi = 8
	}
	return g.siluDecoder(func() attention { return a })
}

// qwen is Qwen 1: feed_forward_length counts gate and up together.
func qwen(g *graph) error {
	a := attention{table: g.rope(ropeSpec{}), neox: true, layout: qkvLoose}
	x := g.decode(g.embed(1), func() attention { return a },
		func(n ops.View) ops.View { return g.glu(ops.SiLU, max(g.width()/2, 1), n) })
	g.head(x)
	return nil
}

// cogvlm is the language side of CogVLM. It rotates with base 10000 whatever the
// file says. Its second set of matrices, for image positions, is not used.
func cogvlm(g *graph) error {
	a := attention{table: g.rope(ropeSpec{dim: g.keyLen, base: 10000, unstretched: true}), neox: true, layout: qkvThirds}
	return g.siluDecoder(func() attention {
		g.spare("vis_attn_qkv.weight", "vis_attn_output.weight", "vis_gate.weight", "vis_up.weight", "vis_down.weight")
		return a
	})
}

// refact is Refact: ALiBi, no RoPE. The reference loads experts for it but runs such
// a layer as the activation alone.
func refact(g *graph) error {
	g.unbiased = []string{"attn_output", "ffn_gate", "ffn_up", "ffn_down"}
	a := attention{table: -1, alibi: 8}
	ff := func(n ops.View) ops.View {
		if g.experts == 0 {
			return g.glu(ops.SiLU, g.width(), n)
		}
		g.spare("ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight")
		out := g.Buffer("ffn_act", n.Width)
		g.Add(&ops.Unary{Act: ops.SiLU, In: n, Out: out})
		return out
	}
	g.head(g.decode(g.embed(1), func() attention { return a }, ff))
	return nil
}

// hunyuanDense is Hunyuan without images, which has no use for M-RoPE sections.
func hunyuanDense(g *graph) error { return hunyuan(g, false) }

// hunyuanVL is Hunyuan with images.
func hunyuanVL(g *graph) error { return hunyuan(g, true) }

// hunyuan normalises the heads of q and k after the rotation, whose base grows with
// rope.scaling.alpha.
func hunyuan(g *graph, visual bool) error {
	if alpha, d := g.keys.float("rope.scaling.alpha", 0), float64(g.keyLen); alpha > 0 && d > 2 {
		g.ropeBase *= math.Pow(alpha, d/(d-2))
	}
	return plain{rope: ofHalves, visual: visual, factors: true, act: ops.SiLU, tune: lateQKNorm}.build(g)
}

// qwen2vl is the language side of Qwen2-VL. The reference reads no epsilon for it;
// files that have none get one that only keeps rows of zeros from becoming NaN.
func qwen2vl(g *graph) error {
	if g.eps == 0 {
		g.eps = 1e-37
	}
	g.unbiased = []string{"output"}
	return plain{rope: ofHalves, sections: contiguous, act: ops.SiLU}.build(g)
}

// siluDecoder is the decoder of pre-norms and SiLU gates with attention as given.
func (g *graph) siluDecoder(attn func() attention) error {
	g.head(g.decode(g.embed(1), attn, func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) }))
	return nil
}
