package compute

import "ganglion/gpu/ops"

// normChain is what stands between a branch's product and the next one: the norm of the
// branch, the addition to the residual stream, the norm of the sum, and its form as whole
// numbers. Any of them may be missing; gpu/kernels/normchain.glsl.
type normChain struct {
	branch *ops.RMSNorm
	add    *ops.Binary
	next   *ops.RMSNorm
	whole  *ops.MatMul // the product that reads the result as whole numbers
	n      int         // operations
}

// chainShared is how much of a workgroup's memory a chain needs besides the row.
const chainShared = 4 * (elementWG + 1)

// normChain finds a chain of at least two steps.
func (r *Runtime) normChain(list []ops.Op) fusion {
	c := &normChain{}
	steps := 0
	last := ops.View{}
	if o := as[*ops.RMSNorm](list, 0); o != nil && wholeRow(o) {
		if add := as[*ops.Binary](list, 1); add != nil && add.Kind == ops.AddKind && (add.A == o.Out) != (add.B == o.Out) {
			c.branch, last = o, o.Out
			c.n++
			steps++
		}
	}
	if o := as[*ops.Binary](list, c.n); o != nil && o.Kind == ops.AddKind && o.A.Width == o.B.Width {
		c.add, last = o, o.Out
		c.n++
		steps++
	}
	if o := as[*ops.RMSNorm](list, c.n); o != nil && wholeRow(o) && (c.n == 0 || o.In == last) {
		c.next, last = o, o.Out
		c.n++
		steps++
	}
	if o := as[*ops.MatMul](list, c.n); c.n > 0 && o != nil && o.In == last && r.readsWhole(o.W) {
		c.whole = o
		steps++
	}
	if steps < 2 || !c.fits(r, last.Width) {
		return nil
	}
	return c
}

// wholeRow tells whether a norm has one group, its whole row.
func wholeRow(o *ops.RMSNorm) bool { return o.Group <= 0 || o.Group == o.In.Width }

// readsWhole tells whether a product with a matrix reads whole numbers.
func (r *Runtime) readsWhole(w *ops.Weight) bool {
	m := r.matrices[w]
	if m == nil {
		return false
	}
	_, isPacked := m.format.(*packed)
	return isPacked
}

// fits tells whether rows can be kept in shared memory and are of one row set.
func (c *normChain) fits(r *Runtime, width int) bool {
	views := c.views()
	return 4*(width+width/32)+chainShared <= r.b.dev.Limits().SharedBytes && r.sameRows(views...)
}

// views lists the operands, the first one being what the chain begins with.
func (c *normChain) views() []ops.View {
	vs := []ops.View{c.source()}
	if c.branch != nil {
		vs = append(vs, c.branch.Out)
	}
	if c.add != nil {
		vs = append(vs, c.residual(), c.add.Out)
	}
	if c.next != nil {
		vs = append(vs, c.next.Out)
	}
	return vs
}

func (c *normChain) source() ops.View {
	switch {
	case c.branch != nil:
		return c.branch.In
	case c.add != nil:
		return c.add.A
	}
	return c.next.In
}

// residual is the operand of the addition that the chain has not made.
func (c *normChain) residual() ops.View {
	if c.branch != nil && c.add.B == c.branch.Out {
		return c.add.A
	}
	return c.add.B
}

func (c *normChain) count() int { return c.n }

func (c *normChain) lower(l *lowering) error {
	in := c.source()
	cols := in.Width
	d := dispatch{kernel: l.variant("normchain"), groups: [3]int{1, l.capacity(in)}}
	out := l.batchBuffer() // not looked at
	var s staged
	var result ops.View
	var branch, residual, sum, dst operand
	var first, second *ops.Weight
	var branchEps, eps float32
	d.reads = l.views(in)
	if c.branch != nil {
		branch, first, branchEps, result = l.operand(c.branch.Out), c.branch.W, c.branch.Eps, c.branch.Out
		d.writes = append(d.writes, l.views(result)...)
	}
	if c.add != nil {
		residual, sum, result = l.operand(c.residual()), l.operand(c.add.Out), c.add.Out
		d.reads = append(d.reads, l.views(c.residual())...)
		d.writes = append(d.writes, l.views(result)...)
	}
	if c.next != nil {
		dst, second, eps, result = l.operand(c.next.Out), c.next.W, c.next.Eps, c.next.Out
		d.writes = append(d.writes, l.views(result)...)
	}
	if c.whole != nil {
		s = l.wholeRows(cols, l.capacity(in))
		out = s.region
		d.writes = append(d.writes, regions(s.region)...)
	}
	d.constants = chosen(cols, normKind(c.branch), flag(c.add != nil), normKind(c.next), flag(c.whole != nil))
	d.bind = []region{l.batchBuffer(), l.arena(in), l.vector(first), l.vector(second), out}
	d.params = params{}.u32(l.rows(in).count).i32(cols).view(l.operand(in)).view(branch).view(residual).view(sum).view(dst).
		i32(0, s.stride).f32(branchEps, eps, 1/float32(cols))
	if err := l.dispatch(d); err != nil {
		return err
	}
	if c.whole != nil {
		l.staged[stageKey{view: result, parts: 1}] = s
	}
	return nil
}

// normKind is a constant of normchain.glsl: no norm, one without and one with weights.
func normKind(o *ops.RMSNorm) int {
	switch {
	case o == nil:
		return 0
	case o.W == nil:
		return 1
	}
	return 2
}
