package model

import "ganglion/gpu/ops"

// convolve is the causal depthwise convolution over time with the named kernel, its
// bias if the file has one, and an activation. The last kernel−1 inputs are recurrent
// state.
func (g *graph) convolve(name string, kernel int, act ops.Act, in ops.View) ops.View {
	full := g.blk(name + ".weight")
	w := g.matrix(full, kernel, in.Width)
	out := g.Buffer(name, in.Width)
	state := g.State(ops.State{Name: g.blk(name), Floats: (kernel - 1) * in.Width})
	g.Add(&ops.ShortConv{W: w, Bias: g.optional(bias(full), in.Width), Act: act, State: state, In: in, Out: out})
	return out
}

// shortConv is the mixer of LFM2: y = C ⊙ conv(B ⊙ x), with B, C and x the thirds of
// one projection. shortconv.out_proj reads the result.
func (g *graph) shortConv(kernel int, n ops.View) ops.View {
	bcx := g.linear("shortconv.in_proj", n, 3*g.embd)
	b, c, x := bcx.Cols(0, g.embd), bcx.Cols(g.embd, g.embd), bcx.Cols(2*g.embd, g.embd)
	return g.multiply(c, g.convolve("shortconv.conv", kernel, ops.Identity, g.multiply(b, x)))
}
