package model

import "ganglion/gpu/ops"

// maple is Maple: local and global layers by the file's pattern, rotation on the local
// ones alone, Q/K norms, experts whose gate and input are limited by swiglu_clamp_exp.
func maple(g *graph) error {
	g.needWindow()
	if g.pattern == nil {
		g.fail("key %q is missing", g.key("attention.sliding_window_pattern"))
	}
	limits := g.limits("swiglu_clamp_exp")
	local := g.sliding(attention{neox: true}, g.rope(ropeSpec{dim: g.ropeDimSWA, base: g.localBase(g.ropeBase)}))
	attn := g.alternating(g.local, 0, local, attention{table: -1})
	ff := func(n ops.View) ops.View {
		return g.mixture(moe{act: ops.SiLU, norm: true, limit: limits[g.il]}, n)
	}
	g.head(g.decode(g.embed(1), attn, ff))
	return nil
}

// limits reads a required limit per layer (or one for all): values up to 1e-6 mean none.
func (g *graph) limits(name string) []float32 {
	const none = 1e-6
	out := make([]float32, g.blocks)
	vs, ok := g.src.Floats(g.key(name))
	if one, isOne := g.src.Float(g.key(name)); isOne && !ok {
		for range g.blocks {
			vs = append(vs, float32(one))
		}
		ok = true
	}
	if !ok || len(vs) < g.blocks {
		g.fail("key %q has %d values for %d layers", g.key(name), len(vs), g.blocks)
		return out
	}
	for il := range out {
		if v := vs[il]; v > none {
			out[il] = v
		} else if v != v {
			g.fail("key %q: layer %d has %v", g.key(name), il, v)
		}
	}
	return out
}
