package compute

import "ganglion/gpu/ops"

// Norms, elementwise operations, rotation and the store into caches.

func (l *lowering) pickRows(o *ops.Rows) error       { return ops.ErrUnsupported }
func (l *lowering) rmsNorm(o *ops.RMSNorm) error     { return ops.ErrUnsupported }
func (l *lowering) layerNorm(o *ops.LayerNorm) error { return ops.ErrUnsupported }
func (l *lowering) l2Norm(o *ops.L2Norm) error       { return ops.ErrUnsupported }
func (l *lowering) binary(o *ops.Binary) error       { return ops.ErrUnsupported }
func (l *lowering) addVec(o *ops.AddVec) error       { return ops.ErrUnsupported }
func (l *lowering) scale(o *ops.Scale) error         { return ops.ErrUnsupported }
func (l *lowering) unary(o *ops.Unary) error         { return ops.ErrUnsupported }
func (l *lowering) glu(o *ops.GLU) error             { return ops.ErrUnsupported }
func (l *lowering) softcap(o *ops.Softcap) error     { return ops.ErrUnsupported }
func (l *lowering) posScale(o *ops.PosScale) error   { return ops.ErrUnsupported }
func (l *lowering) rope(o *ops.RoPE) error           { return ops.ErrUnsupported }
func (l *lowering) kvStore(o *ops.KVStore) error     { return ops.ErrUnsupported }
