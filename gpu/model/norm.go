package model

import "ganglion/gpu/ops"

// normKind is the normalisation a family uses throughout.
type normKind uint8

const (
	rmsNorm   normKind = iota
	layerNorm          // with a bias where the file has one
)

// bare in place of a norm's name stands for a norm without weight.
const bare = "bare_norm"

// norm applies a norm of the layer whose weight is required.
func (g *graph) norm(name string, in ops.View) ops.View { return g.normNamed(g.blk(name), in) }

// normNamed applies the norm with the given full name, such as output_norm.
func (g *graph) normNamed(name string, in ops.View) ops.View {
	weight := name + ".weight"
	if _, ok := g.src.Tensor(weight); !ok {
		if _, ok := g.src.Tensor(name); ok {
			weight = name // PLaMo 3 names its post-norms without ".weight"
		}
	}
	return g.normalize(name, g.vector(weight, in.Width), g.optional(name+".bias", in.Width), 0, in)
}

// normed applies the norm that a layer's description names: none for "", one
// without weight for bare.
func (g *graph) normed(name string, in ops.View) ops.View {
	switch name {
	case "":
		return in
	case bare:
		return g.normalize(name, nil, nil, 0, in)
	}
	return g.norm(name, in)
}

// normalize adds the family's kind of norm over groups of columns (0: the whole
// view). Weight and bias are optional.
func (g *graph) normalize(name string, w, b *ops.Weight, group int, in ops.View) ops.View {
	if g.kind == rmsNorm {
		g.given(g.eps, "attention.layer_norm_rms_epsilon")
		out := g.RMSNorm(name, w, g.eps, group, in)
		if b != nil {
			g.Add(&ops.AddVec{W: b, In: out, Out: out}) // Phi-3.5-MoE
		}
		return out
	}
	g.given(g.layerEps, "attention.layer_norm_epsilon")
	out := g.Buffer(name, in.Width)
	g.Add(&ops.LayerNorm{W: w, Bias: b, Eps: g.layerEps, Group: group, In: in, Out: out})
	return out
}

// given fails when the epsilon of a norm that is used is not in the file.
func (g *graph) given(eps float32, key string) {
	if eps == 0 {
		g.fail("key %q is missing", g.key(key))
	}
}
