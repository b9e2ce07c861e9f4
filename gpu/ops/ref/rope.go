package ref

import "ganglion/gpu/ops"

// angles is a RoPE table for all positions of the context: [context, half].
type angles struct {
	half     int
	axes     []uint8
	cos, sin []float32
}

func newAngles(t *ops.RoPETable, context int) angles {
	cos, sin := t.Angles(0, context)
	return angles{t.NRot / 2, t.Axes, cos, sin}
}

// rope turns the pairs (a, b) of every head: a' = a·cos − b·sin, b' = a·sin + b·cos.
func (p *Program) rope(o *ops.RoPE) {
	t := p.rt.tables[o.Table]
	p.each(o.In, o.Out, func(r int, x, y []float32) {
		copy(y, x)
		row := p.batchRow(o.In, r)
		for h := o.Start; h < len(y); h += o.HeadDim {
			for i := range t.half {
				ia, ib := h+2*i, h+2*i+1
				if o.NeoX {
					ia, ib = h+i, h+i+t.half
				}
				at := int(p.rotary(t, row, i))*t.half + i
				a, b, cos, sin := y[ia], y[ib], t.cos[at], t.sin[at]
				y[ia] = float32(a*cos) - float32(b*sin)
				y[ib] = float32(a*sin) + float32(b*cos)
			}
		}
	})
}

// rotary is the position by which pair i of a row of the batch turns.
func (p *Program) rotary(t angles, row, i int) int32 {
	if t.axes == nil || p.batch.Rotary == nil {
		return p.batch.Pos[row]
	}
	return p.batch.Rotary[row*ops.Axes+int(t.axes[i])]
}
