package model

import (
	"math"

	"ganglion/gpu/ops"
)

// deepseek2 is DeepSeek 2 and 3 and what has their shape (GLM-4.7-Flash, GigaChat 3,
// Mistral Large 3; mistral4): MLA, leading dense layers, experts with groups and a shared one.
func deepseek2(g *graph) error {
	// Files multiply the factor by 0.1. In DeepSeek's own it cancels in the magnitude of
	// cos and sin and acts on the scale of the scores alone.
	logMul := g.scaling.logMul / 0.1
	g.scaling.logMul = logMul
	if logMul != 0 && g.arch == "deepseek2" {
		g.scaling.logMul = 1
	}
	m := g.readLatent()
	m.scale *= g.yarnScale(logMul)
	if t := g.keys.float("attention.temperature_scale", 0); t != 0 {
		m.temperature = ops.PosScale{Scale: float32(t), Floor: float32(g.keys.dim("attention.temperature_length", 0))}
		if m.temperature.Floor == 0 {
			g.fail("key %q is missing", g.key("attention.temperature_length"))
		}
	}
	gating := ops.RouteSoftmax
	if (g.blocks == 47 || g.blocks == 48) && g.fileVocab() == 154880 {
		gating = ops.RouteSigmoid // GLM-4.7-Flash, whose first files do not say
	}
	mix := func(n ops.View) ops.View {
		e := g.listed(gating)
		e.shared = g.expertFF[g.il] * g.sharedCount
		return g.sparse(e, n)
	}
	g.head(g.layers(g.embed(1), func() layer {
		l := preNorm(attention{}, mix)
		l.mix = func(n ops.View) ops.View { return g.attendLatent(m, n) }
		return l
	}))
	return nil
}

// yarnScale is the square of YaRN's magnitude, by which DeepSeek multiplies the scores.
func (g *graph) yarnScale(logMul float64) float64 {
	s := g.scaling
	ln := 0.1 * math.Log(s.factor)
	m := s.attnFactor * (1 + ln*logMul)
	switch {
	case s.kind != "yarn":
		m *= 1 + ln
	case s.factor > 1:
		m *= (1 + ln) / (1 + ln*s.logMul)
	}
	return m * m
}

// fileVocab is the size of the vocabulary the file tells.
func (g *graph) fileVocab() int {
	if n := g.keys.dim("vocab_size", 0); n > 0 {
		return n
	}
	tokens, _ := g.src.Strings("tokenizer.ggml.tokens")
	return len(tokens)
}
