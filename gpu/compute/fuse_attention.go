package compute

import "ganglion/gpu/ops"

// attentionWhole is an attention whose output is also written as the whole numbers that
// the product behind it reads.
type attentionWhole struct{ op *ops.Attention }

// attentionWhole finds an attention whose heads are whole blocks, which its workgroups then
// have to themselves.
func (r *Runtime) attentionWhole(list []ops.Op) fusion {
	o, next := as[*ops.Attention](list, 0), as[*ops.MatMul](list, 1)
	if o == nil || next == nil || next.In != o.Out || !r.readsWhole(next.W) || r.plan.Caches[o.Cache].ValueDim%ops.WholeBlock != 0 {
		return nil
	}
	return &attentionWhole{o}
}

func (*attentionWhole) count() int { return 1 }

func (f *attentionWhole) lower(l *lowering) error {
	s, err := l.attention(f.op, true)
	if err != nil {
		return err
	}
	l.staged[stageKey{view: f.op.Out, parts: 1}] = s
	return nil
}
