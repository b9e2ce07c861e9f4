package compute

import "ganglion/gpu/ops"

// Operations over caches and recurrent states, and the routing of experts.

func (l *lowering) attention(o *ops.Attention) error   { return ops.ErrUnsupported }
func (l *lowering) route(o *ops.Route) error           { return ops.ErrUnsupported }
func (l *lowering) expertSum(o *ops.ExpertSum) error   { return ops.ErrUnsupported }
func (l *lowering) shortConv(o *ops.ShortConv) error   { return ops.ErrUnsupported }
func (l *lowering) mamba1(o *ops.Mamba1) error         { return ops.ErrUnsupported }
func (l *lowering) mamba2(o *ops.Mamba2) error         { return ops.ErrUnsupported }
func (l *lowering) gatedDelta(o *ops.GatedDelta) error { return ops.ErrUnsupported }
