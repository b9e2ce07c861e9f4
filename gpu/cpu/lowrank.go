//go:build cgo

package cpu

// #include "cpu.h"
import "C"

import (
	"unsafe"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// lowRank appends an adapter's update.
func (c *compiler) lowRank(v *ops.LowRank) {
	o := C.gl_op{kind: C.GL_OP_LOWRANK, by: C.GL_BY_TASK}
	o.i = [9]C.int32_t{C.int32_t(v.Adapter), flag(v.ByToken), C.int32_t(v.IDs.Width), floatLayout(v.A), floatLayout(v.B)}
	o.f[0] = C.float(v.Factor)
	if !v.ByToken {
		o.in[0] = c.view(v.In)
	}
	if v.IDs.Width > 0 {
		o.in[1] = c.view(v.IDs)
	}
	o.out[0] = c.view(v.Out)
	c.add(o)
	c.mats[len(c.mats)-1] = []C.gl_mat{{w: c.r.weights[v.A]}, {w: c.r.weights[v.B]}}
	c.wrote(v)
}

// floatLayout is how a kernel with float activations reads a factor of an update.
func floatLayout(w *ops.Weight) C.int32_t {
	switch w.Type {
	case tensor.F16:
		return C.GL_F16
	case tensor.BF16:
		return C.GL_BF16
	}
	return C.GL_F32 // other types are widened at load
}

// setScales tells a program the strengths of the batch's adapters and which of them
// any row uses.
func (p *Program) setScales(b *ops.Batch) {
	n := p.rt.plan.Adapters
	if n == 0 {
		return
	}
	clear(p.active)
	clear(p.scales)
	copy(p.scales, b.Scales)
	for i, s := range b.Scales {
		if s != 0 {
			p.active[i%n] = 1
		}
	}
}

// carveScales places what setScales fills; without memory it only measures.
func (p *Program) carveScales(m *carver) (scales, active unsafe.Pointer) {
	n := p.rt.plan.Adapters
	return m.take(int64(n) * int64(p.shape.Rows) * 4), m.take(int64(n) * 4)
}

// keepScales makes the places known to both sides.
func (p *Program) keepScales(scales, active unsafe.Pointer) {
	n := p.rt.plan.Adapters
	p.scales = unsafe.Slice((*float32)(scales), n*p.shape.Rows)
	p.active = unsafe.Slice((*int32)(active), n)
	p.c.scales, p.c.active, p.c.adapters = (*C.float)(scales), (*C.int32_t)(active), C.int32_t(n)
}
