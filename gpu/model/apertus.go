package model

import (
	"math"

	"ganglion/gpu/ops"
)

// apertus is Apertus: a feed-forward network without gate whose activation, xIELU, has
// parameters of its own in every layer.
func apertus(g *graph) error {
	a := attention{table: g.rope(ropeSpec{factors: true}), neox: true, qkNorm: qkRequired}
	shapes := g.xielu()
	ff := func(n ops.View) ops.View {
		g.spare("attn_q_norm.bias", "attn_k_norm.bias") // the reference loads and leaves them
		return g.linear("ffn_down", shapes[g.il].apply(g, g.linear("ffn_up", n, g.width())), g.embd)
	}
	g.head(g.decode(g.embed(1), func() attention { return a }, ff))
	return nil
}

// xielu is x·(p·x + b) above 0 and n·(eˣ − 1 − x) + b·x below (arXiv:2411.13010).
type xielu struct{ n, p, b float64 }

// xielu reads the parameters of all layers; the file has the outer two before their
// softplus. xielu.eps keeps e^x − 1 from cancelling near 0, where the term vanishes.
func (g *graph) xielu() []xielu {
	n, p, b := g.xieluKey("xielu.alpha_n"), g.xieluKey("xielu.alpha_p"), g.xieluKey("xielu.beta")
	g.xieluKey("xielu.eps")
	softplus := func(x float32) float64 { return math.Log1p(math.Exp(float64(x))) }
	out := make([]xielu, g.blocks)
	for il := range out {
		out[il] = xielu{n: float64(b[il]) + softplus(n[il]), p: softplus(p[il]), b: float64(b[il])}
	}
	return out
}

// xieluKey reads a value for each layer, or one for all; these keys have no prefix.
func (g *graph) xieluKey(key string) []float32 {
	out := make([]float32, g.blocks)
	vs, ok := g.src.Floats(key)
	one, single := g.src.Float(key)
	switch {
	case ok && len(vs) >= g.blocks:
		copy(out, vs)
	case single:
		for il := range out {
			out[il] = float32(one)
		}
	default:
		g.fail("key %q has %d values for %d layers", key, len(vs), g.blocks)
	}
	return out
}

// apply adds the activation: above 0 by its square, below by what ReLU takes away.
func (s xielu) apply(g *graph, x ops.View) ops.View {
	unary := func(act ops.Act, in ops.View) ops.View {
		out := g.Buffer("xielu", in.Width)
		g.Add(&ops.Unary{Act: act, In: in, Out: out})
		return out
	}
	linear := func(factor, offset float64, in ops.View) ops.View {
		out := g.Buffer("xielu", in.Width)
		g.Add(&ops.Scale{Factor: float32(factor), Offset: float32(offset), In: in, Out: out})
		return out
	}
	below := g.Sum("xielu", x, linear(-1, 0, unary(ops.ReLU, x)))
	y := g.Sum("xielu", linear(s.n, -s.n, unary(ops.Exponential, below)), linear(-s.n, 0, below))
	y = g.Sum("xielu", y, linear(s.p, 0, unary(ops.ReLU2, x)))
	return g.Sum("xielu", y, linear(s.b, 0, x))
}
