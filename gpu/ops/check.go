package ops

import (
	"errors"
	"fmt"
)

// sameRows reports an error when the views do not all have one row set.
func sameRows(p *Plan, vs ...View) error {
	for _, v := range vs[1:] {
		if p.Buffers[v.Buf].Rows != p.Buffers[vs[0].Buf].Rows {
			return fmt.Errorf("buffers %q and %q have different row sets",
				p.Buffers[vs[0].Buf].Name, p.Buffers[v.Buf].Name)
		}
	}
	return nil
}

// elems reports an error when a view's buffer does not hold the given type.
func elems(p *Plan, e Elem, vs ...View) error {
	for _, v := range vs {
		if p.Buffers[v.Buf].Elem != e {
			return fmt.Errorf("buffer %q has the wrong element type", p.Buffers[v.Buf].Name)
		}
	}
	return nil
}

// perRow reports an error when a view is not of the rows of the batch.
func perRow(p *Plan, vs ...View) error {
	for _, v := range vs {
		if p.Buffers[v.Buf].Rows != PerRow {
			return fmt.Errorf("buffer %q is not per row", p.Buffers[v.Buf].Name)
		}
	}
	return nil
}

// apart reports an output that shares columns with an input.
func apart(out View, ins ...View) error {
	for _, v := range ins {
		if overlap(out, v) {
			return errors.New("output overlaps an input")
		}
	}
	return nil
}

// inPlace reports an output that shares columns with an input without being it.
func inPlace(out View, ins ...View) error {
	for _, v := range ins {
		if v != out && overlap(out, v) {
			return errors.New("output overlaps an input partly")
		}
	}
	return nil
}

func overlap(a, b View) bool {
	return a.Buf == b.Buf && a.Off < b.Off+b.Width && b.Off < a.Off+a.Width
}

// elementwise checks operations whose output has the shape of their inputs; the
// output may be an input.
func elementwise(p *Plan, out View, ins ...View) error {
	all := append([]View{out}, ins...)
	errs := []error{sameRows(p, all...), elems(p, F32, all...), inPlace(out, ins...)}
	for _, v := range ins {
		errs = append(errs, width("input", v.Width, out.Width))
	}
	return errors.Join(errs...)
}

// grouped checks a norm over groups with an optional weight of a group's width or
// of the whole view's.
func grouped(p *Plan, in, out View, group int, ws ...*Weight) error {
	if group > 0 && in.Width%group != 0 {
		return fmt.Errorf("width %d is no multiple of the group %d", in.Width, group)
	}
	if group <= 0 {
		group = in.Width
	}
	for _, w := range ws {
		if w != nil && w.elements() != group && w.elements() != in.Width {
			return fmt.Errorf("weight %q has %d elements for groups of %d", w.Name, w.elements(), group)
		}
	}
	return elementwise(p, out, in)
}

func vector(w *Weight, n int) error {
	if w != nil && w.elements() != n {
		return fmt.Errorf("weight %q has %d elements, want %d", w.Name, w.elements(), n)
	}
	return nil
}

func (w *Weight) elements() int { return w.Cols * w.Rows * max(w.Experts, 1) }

func (o *Embed) check(p *Plan) error {
	if !o.ByPosition && o.Table.Rows < p.TokenIDs() {
		return fmt.Errorf("table %q has %d rows for a vocabulary of %d", o.Table.Name, o.Table.Rows, p.TokenIDs())
	}
	return errors.Join(width("table row", o.Table.Cols, o.Out.Width), elems(p, F32, o.Out), perRow(p, o.Out))
}

func (o *Deepstack) check(p *Plan) error {
	if o.Slice < 1 || o.Slice > p.Slices {
		return fmt.Errorf("slice %d of %d", o.Slice, p.Slices)
	}
	return errors.Join(width("slice", p.Embed, o.Out.Width), elementwise(p, o.Out, o.In))
}

func (o *Rows) check(p *Plan) error {
	if p.Buffers[o.In.Buf].Rows != PerRow || p.Buffers[o.Out.Buf].Rows != PerOut {
		return errors.New("must read a per-row and write a per-output buffer")
	}
	return errors.Join(width("output", o.Out.Width, o.In.Width), elems(p, F32, o.In, o.Out))
}

func (o *MatMul) check(p *Plan) error {
	return errors.Join(width("input", o.In.Width, o.W.Cols), width("output", o.Out.Width, o.W.Rows),
		vector(o.Bias, o.W.Rows), sameRows(p, o.In, o.Out), elems(p, F32, o.In, o.Out), apart(o.Out, o.In))
}

func (o *RMSNorm) check(p *Plan) error   { return grouped(p, o.In, o.Out, o.Group, o.W) }
func (o *LayerNorm) check(p *Plan) error { return grouped(p, o.In, o.Out, o.Group, o.W, o.Bias) }
func (o *L2Norm) check(p *Plan) error    { return grouped(p, o.In, o.Out, o.Group) }

func (o *Binary) check(p *Plan) error {
	if o.B.Width <= 0 || o.A.Width%o.B.Width != 0 {
		return fmt.Errorf("second operand of width %d does not repeat over %d", o.B.Width, o.A.Width)
	}
	return errors.Join(elementwise(p, o.Out, o.A), sameRows(p, o.A, o.B), elems(p, F32, o.B), inPlace(o.Out, o.B))
}

func (o *AddVec) check(p *Plan) error {
	if n := o.W.elements(); o.In.Width%n != 0 {
		return fmt.Errorf("weight %q of %d elements does not repeat over %d", o.W.Name, n, o.In.Width)
	}
	return elementwise(p, o.Out, o.In)
}

func (o *Scale) check(p *Plan) error { return elementwise(p, o.Out, o.In) }
func (o *Unary) check(p *Plan) error { return elementwise(p, o.Out, o.In) }
func (o *GLU) check(p *Plan) error   { return elementwise(p, o.Out, o.Gate, o.Up) }

func (o *PosScale) check(p *Plan) error {
	if !(o.Floor > 0) || !(o.Offset >= 0) {
		return fmt.Errorf("floor %v must be positive, offset %v not negative", o.Floor, o.Offset)
	}
	return elementwise(p, o.Out, o.In)
}

func (o *Softcap) check(p *Plan) error {
	if !(o.Cap > 0) {
		return errors.New("cap must be positive")
	}
	return elementwise(p, o.Out, o.In)
}

func (o *RoPE) check(p *Plan) error {
	if o.Table < 0 || o.Table >= len(p.Tables) {
		return fmt.Errorf("table %d does not exist", o.Table)
	}
	if n := p.Tables[o.Table].NRot; o.Start < 0 || n > o.HeadDim || o.Start > o.HeadDim-n {
		return fmt.Errorf("rotates %d columns from %d of heads %d wide", n, o.Start, o.HeadDim)
	}
	if o.In.Width%o.HeadDim != 0 {
		return fmt.Errorf("width %d is no multiple of the head width %d", o.In.Width, o.HeadDim)
	}
	return elementwise(p, o.Out, o.In)
}

func (p *Plan) cache(i int) (Cache, error) {
	if i < 0 || i >= len(p.Caches) {
		return Cache{}, fmt.Errorf("cache %d does not exist", i)
	}
	return p.Caches[i], nil
}

func (p *Plan) state(i, floats int) error {
	if i < 0 || i >= len(p.States) {
		return fmt.Errorf("state %d does not exist", i)
	}
	return width("state "+p.States[i].Name, p.States[i].Floats, floats)
}

func (o *KVStore) check(p *Plan) error {
	c, err := p.cache(o.Cache)
	if err != nil {
		return err
	}
	return errors.Join(width("key", o.K.Width, c.KVHeads*c.KeyDim), width("value", o.V.Width, c.KVHeads*c.ValueDim),
		perRow(p, o.K, o.V), elems(p, F32, o.K, o.V))
}

func (o *Attention) check(p *Plan) error {
	c, err := p.cache(o.Cache)
	if err != nil {
		return err
	}
	if o.Heads <= 0 || o.Heads%c.KVHeads != 0 {
		return fmt.Errorf("%d heads do not divide over %d KV heads", o.Heads, c.KVHeads)
	}
	if o.Window < 0 || o.Softcap < 0 || o.ALiBi < 0 {
		return fmt.Errorf("window %d, softcap %v, ALiBi %v: none may be negative", o.Window, o.Softcap, o.ALiBi)
	}
	if o.Chunked && o.Window == 0 {
		return errors.New("chunks of no window")
	}
	if o.Span < 0 || o.Span > p.Spans || (o.Span > 0 && o.ALiBi > 0) {
		return fmt.Errorf("span %d of %d, ALiBi %v", o.Span, p.Spans, o.ALiBi)
	}
	if c.Window > 0 && (o.Window == 0 || o.Window > c.Window) {
		return fmt.Errorf("window %d over a cache of window %d", o.Window, c.Window)
	}
	return errors.Join(width("query", o.Q.Width, o.Heads*c.KeyDim), width("output", o.Out.Width, o.Heads*c.ValueDim),
		vector(o.Sinks, o.Heads), sameRows(p, o.Q, o.Out), elems(p, F32, o.Q, o.Out), apart(o.Out, o.Q))
}

func (o *Route) check(p *Plan) error {
	if o.TopK <= 0 || o.TopK > o.In.Width {
		return fmt.Errorf("chooses %d of %d experts", o.TopK, o.In.Width)
	}
	if o.Groups > 1 && (o.In.Width%o.Groups != 0 || o.GroupsUsed <= 0 || o.GroupsUsed > o.Groups ||
		o.TopK > o.GroupsUsed*(o.In.Width/o.Groups)) {
		return fmt.Errorf("%d groups, %d used, of %d experts, %d chosen", o.Groups, o.GroupsUsed, o.In.Width, o.TopK)
	}
	if o.Share < 0 || o.Share > 1 && o.In.Width%o.Share != 0 {
		return fmt.Errorf("%d experts do not divide into shares of %d", o.In.Width, o.Share)
	}
	if o.Kind > RouteRawSigmoid {
		return fmt.Errorf("unknown kind %d", o.Kind)
	}
	return errors.Join(width("ids", o.IDs.Width, o.TopK), width("weights", o.Weights.Width, o.TopK),
		vector(o.Bias, o.In.Width), sameRows(p, o.In, o.IDs, o.Weights), elems(p, F32, o.In, o.Weights), elems(p, I32, o.IDs),
		apart(o.Weights, o.In))
}

func (o *ExpertMatMul) check(p *Plan) error {
	if o.In.Width != o.W.Cols && o.In.Width != o.W.Cols*o.IDs.Width {
		return fmt.Errorf("input is %d wide, want %d or that for each of %d experts", o.In.Width, o.W.Cols, o.IDs.Width)
	}
	return errors.Join(width("output", o.Out.Width, o.W.Rows*o.IDs.Width), vector(o.Bias, o.W.Rows*max(o.W.Experts, 1)),
		sameRows(p, o.In, o.IDs, o.Out), elems(p, I32, o.IDs), elems(p, F32, o.In, o.Out), apart(o.Out, o.In))
}

func (o *ExpertSum) check(p *Plan) error {
	return errors.Join(width("input", o.In.Width, o.Out.Width*o.IDs.Width), width("weights", o.Weights.Width, o.IDs.Width),
		sameRows(p, o.In, o.IDs, o.Weights, o.Out), elems(p, I32, o.IDs), elems(p, F32, o.In, o.Weights, o.Out),
		apart(o.Out, o.In, o.Weights))
}

func (o *ShortConv) check(p *Plan) error {
	return errors.Join(elementwise(p, o.Out, o.In), perRow(p, o.In), apart(o.Out, o.In),
		width("kernel rows", o.W.Rows, o.In.Width), vector(o.W, o.W.Rows*o.W.Cols), vector(o.Bias, o.In.Width),
		p.state(o.State, (o.W.Cols-1)*o.In.Width))
}

func (o *Mamba1) check(p *Plan) error {
	c := o.X.Width
	return errors.Join(perRow(p, o.X, o.Dt, o.B, o.C, o.Out), elems(p, F32, o.B, o.C), apart(o.Out, o.X, o.Dt, o.B, o.C),
		elementwise(p, o.Out, o.X, o.Dt), width("B", o.B.Width, o.N), width("C", o.C.Width, o.N),
		vector(o.A, c*o.N), vector(o.D, c), p.state(o.State, c*o.N))
}

func (o *Mamba2) check(p *Plan) error {
	if o.Heads <= 0 || o.X.Width%o.Heads != 0 || o.Groups <= 0 || o.Heads%o.Groups != 0 || o.N <= 0 {
		return fmt.Errorf("width %d, %d heads, %d groups, %d states", o.X.Width, o.Heads, o.Groups, o.N)
	}
	return errors.Join(perRow(p, o.X, o.Dt, o.B, o.C, o.Out), elems(p, F32, o.Dt, o.B, o.C), apart(o.Out, o.X, o.Dt, o.B, o.C),
		elementwise(p, o.Out, o.X), width("dt", o.Dt.Width, o.Heads), width("B", o.B.Width, o.Groups*o.N),
		width("C", o.C.Width, o.Groups*o.N), vector(o.A, o.Heads), vector(o.D, o.Heads), p.state(o.State, o.X.Width*o.N))
}

func (o *GatedDelta) check(p *Plan) error {
	if o.KHeads <= 0 || o.VHeads <= 0 || o.VHeads%o.KHeads != 0 || o.Dim <= 0 {
		return fmt.Errorf("%d value heads over %d key heads, %d wide", o.VHeads, o.KHeads, o.Dim)
	}
	all := []View{o.Q, o.K, o.V, o.Gate, o.Beta}
	return errors.Join(perRow(p, append(all, o.Out)...), elems(p, F32, all...), apart(o.Out, all...),
		width("q", o.Q.Width, o.KHeads*o.Dim), width("k", o.K.Width, o.KHeads*o.Dim),
		width("v", o.V.Width, o.VHeads*o.Dim), width("gate", o.Gate.Width, o.VHeads), width("beta", o.Beta.Width, o.VHeads),
		elementwise(p, o.Out, o.V), p.state(o.State, o.VHeads*o.Dim*o.Dim))
}
