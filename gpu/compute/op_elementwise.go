package compute

import "ganglion/gpu/ops"

// Elementwise operations: one invocation per element, columns in x and rows in y.

// wide is the grid of a view's elements.
func (l *lowering) wide(v ops.View) [3]int {
	return [3]int{groupsOf(v.Width), l.capacity(v)}
}

// elementwise begins the dispatch of an operation on views of one row set: it binds
// batch and activations and has the parameters rows and width; more stand between.
func (l *lowering) elementwise(kernel string, flops int64, out ops.View, ins ...ops.View) dispatch {
	return dispatch{
		kernel: kernel,
		bind:   []region{l.batchBuffer(), l.arena(out)},
		params: params{}.u32(l.rows(out).count, uint32(out.Width)),
		groups: l.wide(out),
		reads:  l.views(ins...), writes: l.views(out),
		flops: flops * int64(out.Width) * int64(l.capacity(out)),
	}
}

// chosen are the constants of a kernel behind its workgroup.
func chosen(constants ...int) []uint32 {
	all := []uint32{elementWG}
	for _, c := range constants {
		all = append(all, uint32(c))
	}
	return all
}

// What functions cost in operations, for the prediction of time.
const (
	plainFlops    = 1
	functionFlops = 60
)

func (l *lowering) binary(o *ops.Binary) error {
	d := l.elementwise("binary", plainFlops, o.Out, o.A, o.B)
	d.constants = chosen(flag(o.Kind == ops.MulKind))
	d.params = d.params.u32(uint32(o.B.Width)).view(l.operand(o.A)).view(l.operand(o.B)).view(l.operand(o.Out))
	return l.dispatch(d)
}

func (l *lowering) addVec(o *ops.AddVec) error {
	d := l.elementwise("addvec", plainFlops, o.Out, o.In)
	d.constants = chosen(flag(o.Mul))
	d.bind = append(d.bind, l.vector(o.W))
	d.params = d.params.u32(uint32(elements(o.W))).view(l.operand(o.In)).view(l.operand(o.Out))
	return l.dispatch(d)
}

func (l *lowering) scale(o *ops.Scale) error {
	d := l.elementwise("scale", 2*plainFlops, o.Out, o.In)
	d.params = d.params.view(l.operand(o.In)).view(l.operand(o.Out)).f32(o.Factor, o.Offset, o.Clamp)
	return l.dispatch(d)
}

func (l *lowering) unary(o *ops.Unary) error {
	d := l.elementwise(l.variant("unary"), functionFlops, o.Out, o.In)
	d.constants = chosen(int(o.Act))
	d.params = d.params.view(l.operand(o.In)).view(l.operand(o.Out))
	return l.dispatch(d)
}

func (l *lowering) glu(o *ops.GLU) error { return l.dispatch(l.gluDispatch(o, "glu")) }

func (l *lowering) gluDispatch(o *ops.GLU, kernel string) dispatch {
	d := l.elementwise(l.variant(kernel), functionFlops, o.Out, o.Gate, o.Up)
	d.constants = chosen(int(o.Act), flag(o.Alpha > 0))
	d.params = d.params.view(l.operand(o.Gate)).view(l.operand(o.Up)).view(l.operand(o.Out)).f32(o.Limit, o.Alpha, o.UpOffset)
	return d
}

func (l *lowering) softcap(o *ops.Softcap) error {
	d := l.elementwise(l.variant("softcap"), functionFlops, o.Out, o.In)
	d.params = d.params.view(l.operand(o.In)).view(l.operand(o.Out)).f32(o.Cap, 1/o.Cap)
	return l.dispatch(d)
}

func (l *lowering) posScale(o *ops.PosScale) error {
	d := l.elementwise("posscale", plainFlops, o.Out, o.In)
	d.params = d.params.u32(l.batch.factorsOf(o, l.rows(o.Out))).view(l.operand(o.In)).view(l.operand(o.Out))
	return l.dispatch(d)
}
