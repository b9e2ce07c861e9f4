package ref

import "ganglion/gpu/ops"

// gather makes each unit of the output from those that the list names.
func (p *Program) gather(o *ops.Gather) {
	list, units := p.batch.Lists[o.List], o.In.Width/o.Unit
	unit := func(i int32) []float32 {
		return p.row(o.In, int(i)/units)[int(i)%units*o.Unit:][:o.Unit]
	}
	inverse := 1 / float32(o.Terms)
	for r := range p.count(o.Out) {
		out := p.row(o.Out, r)
		for at := 0; at < len(out); at += o.Unit {
			terms := list[:o.Terms]
			list = list[o.Terms:]
			y := out[at : at+o.Unit]
			clear(y)
			if o.Terms == 1 {
				if terms[0] >= 0 {
					copy(y, unit(terms[0]))
				}
				continue
			}
			for _, t := range terms {
				if t < 0 {
					continue
				}
				for i, v := range unit(t) {
					y[i] += v
				}
			}
			for i := range y {
				if o.Mean {
					y[i] *= inverse
				}
			}
		}
	}
}
