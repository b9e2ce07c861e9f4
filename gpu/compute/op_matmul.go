package compute

import "ganglion/gpu/ops"

// Operations over packed matrices.

func (l *lowering) embed(o *ops.Embed) error               { return ops.ErrUnsupported }
func (l *lowering) matMul(o *ops.MatMul) error             { return ops.ErrUnsupported }
func (l *lowering) lowRank(o *ops.LowRank) error           { return ops.ErrUnsupported }
func (l *lowering) expertMatMul(o *ops.ExpertMatMul) error { return ops.ErrUnsupported }
