package model

import "ganglion/gpu/ops"

// blocksOf copies count blocks of width columns: block i begins at i·from of in and at
// i·to of out. It takes apart what a projection lays out head by head, puts a head
// together from two parts, and repeats a block (from 0).
func (g *graph) blocksOf(count, width int, in ops.View, from int, out ops.View, to int) {
	for i := range count {
		g.Add(&ops.Unary{Act: ops.Identity, In: in.Cols(i*from, width), Out: out.Cols(i*to, width)})
	}
}

// part is width columns from column at of every group of group columns, side by side.
func (g *graph) part(name string, in ops.View, group, at, width int) ops.View {
	count := in.Width / group
	out := g.Buffer(name, count*width)
	g.blocksOf(count, width, in.Cols(at, in.Width-at), group, out, width)
	return out
}

// sigmoid is σ(v), in place.
func (g *graph) sigmoid(v ops.View) ops.View { return g.activate(ops.Sigmoid, v) }

// activate applies an activation function in place.
func (g *graph) activate(act ops.Act, v ops.View) ops.View {
	g.Add(&ops.Unary{Act: act, In: v, Out: v})
	return v
}

// multiply is v ← v ⊙ by; a narrower by repeats over the columns.
func (g *graph) multiply(by, v ops.View) ops.View {
	g.Add(&ops.Binary{Kind: ops.MulKind, A: v, B: by, Out: v})
	return v
}

// addVector adds a vector in place, or multiplies by it.
func (g *graph) addVector(w *ops.Weight, mul bool, v ops.View) ops.View {
	g.Add(&ops.AddVec{W: w, Mul: mul, In: v, Out: v})
	return v
}

// values reads a required tensor of n values of the layer, whatever its shape; files
// write vectors as rows and as columns.
func (g *graph) values(name string, n int) *ops.Weight {
	full := g.blk(name)
	w := g.required(full, g.weight(full, 0, 0, 1), n, 1)
	if w.Cols*w.Rows != n {
		g.fail("tensor %q is [%d, %d], want %d values", full, w.Cols, w.Rows, n)
	}
	return w
}
