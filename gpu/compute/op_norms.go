package compute

import "ganglion/gpu/ops"

// Norms: a workgroup has one group of columns of one row.

// norm is what the three norms have in common.
type norm struct {
	kernel  string
	w, b    *ops.Weight
	group   int
	eps     float32
	in, out ops.View
	bias    bool // the kernel has a binding for b
}

func (l *lowering) rmsNorm(o *ops.RMSNorm) error {
	return l.norm(norm{kernel: "rmsnorm", w: o.W, group: o.Group, eps: o.Eps, in: o.In, out: o.Out})
}

func (l *lowering) layerNorm(o *ops.LayerNorm) error {
	return l.norm(norm{kernel: "layernorm", w: o.W, b: o.Bias, group: o.Group, eps: o.Eps, in: o.In, out: o.Out, bias: true})
}

func (l *lowering) l2Norm(o *ops.L2Norm) error {
	return l.norm(norm{kernel: "l2norm", group: o.Group, eps: o.Eps, in: o.In, out: o.Out})
}

func (l *lowering) norm(n norm) error {
	group := n.group
	if group <= 0 {
		group = n.in.Width
	}
	d := l.elementwise(l.variant(n.kernel), 4, n.out, n.in)
	d.constants = chosen(flag(n.w != nil), flag(n.b != nil))
	d.bind = append(d.bind, l.vector(n.w))
	if n.bias {
		d.bind = append(d.bind, l.vector(n.b))
	}
	d.params = params{}.u32(l.rows(n.out).count, uint32(group)).view(l.operand(n.in)).view(l.operand(n.out)).
		u32(groupStep(n.w, n.in, group), groupStep(n.b, n.in, group)).f32(n.eps, 1/float32(group))
	d.groups[0] = n.in.Width / group
	return l.dispatch(d)
}

// groupStep is how far the weights of neighbouring groups lie apart: a weight is as
// wide as the view, or as a group and then the same for all.
func groupStep(w *ops.Weight, in ops.View, group int) uint32 {
	if w == nil || elements(w) != in.Width {
		return 0
	}
	return uint32(group)
}
