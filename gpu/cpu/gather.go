//go:build cgo

package cpu

// #include "cpu.h"
import "C"

import (
	"unsafe"

	"ganglion/gpu/ops"
)

// gather describes ops.Gather for the kernel.
func (c *compiler) gather(v *ops.Gather) C.gl_op {
	o := C.gl_op{kind: C.GL_OP_GATHER, by: C.GL_BY_TASK}
	at, _ := listAt(c.r.plan, c.shape, v.List)
	o.i = [9]C.int32_t{C.int32_t(v.Unit), C.int32_t(v.Terms), flag(v.Mean), C.int32_t(at)}
	o.f[0] = C.float(1 / float32(v.Terms))
	o.in[0], o.out[0] = c.view(v.In), c.view(v.Out)
	return o
}

// listAt is where a list of the batch begins in gl_prog.lists, and where the list behind
// it does.
func listAt(p *ops.Plan, s ops.Shape, list int) (from, to int) {
	for _, l := range p.Lists[:list+1] {
		rows := s.Rows
		if l.Rows == ops.PerOut {
			rows = s.Outs
		}
		from, to = to, to+rows*l.Per
	}
	return from, to
}

// carveLists places the lists of a batch; without memory it only measures.
func (p *Program) carveLists(m *carver) unsafe.Pointer {
	n := len(p.rt.plan.Lists)
	if n == 0 {
		return nil
	}
	_, end := listAt(p.rt.plan, p.shape, n-1)
	at := m.take(4 * int64(end))
	if at != nil {
		p.lists = unsafe.Slice((*int32)(at), end)
	}
	return at
}

// setLists tells a program the lists of a batch.
func (p *Program) setLists(b *ops.Batch) {
	for i, l := range b.Lists {
		from, _ := listAt(p.rt.plan, p.shape, i)
		copy(p.lists[from:], l)
	}
}
