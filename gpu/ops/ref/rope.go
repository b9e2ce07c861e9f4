package ref

import "ganglion/gpu/ops"

// angles is a RoPE table for all positions of the context: [context, half].
type angles struct {
	half     int
	cos, sin []float32
}

func newAngles(t *ops.RoPETable, context int) angles {
	cos, sin := t.Angles(0, context)
	return angles{t.NRot / 2, cos, sin}
}

// rope turns the pairs (a, b) of every head: a' = a·cos − b·sin, b' = a·sin + b·cos.
func (p *Program) rope(o *ops.RoPE) {
	t := p.rt.tables[o.Table]
	p.each(o.In, o.Out, func(r int, x, y []float32) {
		copy(y, x)
		at := int(p.batch.Pos[p.batchRow(o.In, r)]) * t.half
		for h := o.Start; h < len(y); h += o.HeadDim {
			for i := range t.half {
				ia, ib := h+2*i, h+2*i+1
				if o.NeoX {
					ia, ib = h+i, h+i+t.half
				}
				a, b, cos, sin := y[ia], y[ib], t.cos[at+i], t.sin[at+i]
				y[ia] = float32(a*cos) - float32(b*sin)
				y[ib] = float32(a*sin) + float32(b*cos)
			}
		}
	})
}
