package compute

import "ganglion/gpu/ops"

// Fusion takes runs of neighbouring operations of a plan together into one dispatch. What
// a fusion stores and how it rounds is what its operations do apart, so that exact mode
// gives the same bits with and without. Which runs are fused depends on the plan and the
// device alone, never on a batch.

// fusion is a run of operations that are lowered together.
type fusion interface {
	// count is the number of operations.
	count() int
	lower(l *lowering) error
}

// fuse finds the runs of a plan, by their first operation.
func (r *Runtime) fuse() map[int]fusion {
	runs := make(map[int]fusion)
	if r.b.opts.Plain {
		return runs
	}
	for i := 0; i < len(r.plan.Ops); {
		f := r.fusionAt(i)
		if f == nil {
			i++
			continue
		}
		runs[i] = f
		i += f.count()
	}
	return runs
}

// fusionAt is the run that begins at an operation, nil when there is none.
func (r *Runtime) fusionAt(i int) fusion {
	list := r.plan.Ops[i:]
	for _, find := range []func([]ops.Op) fusion{r.products, r.productChain, r.headStore, r.normChain, r.gluWhole, r.attentionWhole} {
		if f := find(list); f != nil {
			return f
		}
	}
	return nil
}

// fused is a run as one operation: its operands are in use together, so that none of what
// it writes may share memory with what it reads. Op is the run's first operation.
type fused struct {
	ops.Op
	reads, writes []ops.View
}

func (f *fused) Reads() []ops.View  { return f.reads }
func (f *fused) Writes() []ops.View { return f.writes }

// together lists the operations of a plan, a run as one of them.
func together(list []ops.Op, runs map[int]fusion) []ops.Op {
	var all []ops.Op
	for i := 0; i < len(list); {
		run := runs[i]
		if run == nil {
			all = append(all, list[i])
			i++
			continue
		}
		f := &fused{Op: list[i]}
		for _, op := range list[i : i+run.count()] {
			f.reads, f.writes = append(f.reads, op.Reads()...), append(f.writes, op.Writes()...)
		}
		all = append(all, f)
		i += run.count()
	}
	return all
}

// as is operation i of a list when it has a type, and nil otherwise.
func as[T ops.Op](list []ops.Op, i int) T {
	var none T
	if i >= len(list) {
		return none
	}
	o, _ := list[i].(T)
	return o
}

// sameRows tells whether views are of one row set.
func (r *Runtime) sameRows(vs ...ops.View) bool {
	for _, v := range vs {
		if r.plan.Buffers[v.Buf].Rows != r.plan.Buffers[vs[0].Buf].Rows {
			return false
		}
	}
	return true
}
