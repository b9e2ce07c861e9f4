package compute

import "ganglion/gpu/ops"

// gluWhole is a GLU whose result is also written as the whole numbers that the product
// behind it reads.
type gluWhole struct{ op *ops.GLU }

func (r *Runtime) gluWhole(list []ops.Op) fusion {
	o, next := as[*ops.GLU](list, 0), as[*ops.MatMul](list, 1)
	if o == nil || next == nil || next.In != o.Out || !r.readsWhole(next.W) {
		return nil
	}
	return &gluWhole{o}
}

func (*gluWhole) count() int { return 1 }

func (f *gluWhole) lower(l *lowering) error {
	out := f.op.Out
	s := l.wholeRows(out.Width, l.capacity(out))
	d := l.gluDispatch(f.op, "gluwhole")
	d.bind = append(d.bind, s.region)
	d.params = d.params.i32(0, s.stride)
	d.writes = append(d.writes, regions(s.region)...)
	if err := l.dispatch(d); err != nil {
		return err
	}
	l.staged[stageKey{view: out, parts: 1}] = s
	return nil
}
