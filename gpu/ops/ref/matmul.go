package ref

import (
	"fmt"

	"ganglion/gpu/ops"
)

// matMul is out[r] = W·in[r] + Bias. Each row of W is widened or decoded once and
// multiplied with every row of the batch.
func (p *Program) matMul(o *ops.MatMul) {
	xs := make([]operand, p.count(o.In))
	for r := range xs {
		xs[r] = newOperand(o.W, p.row(o.In, r))
	}
	bias := p.rt.vector(o.Bias)
	p.parallel(o.W.Rows, func(from, to int) {
		w := p.rt.newFactor(o.W)
		for c := from; c < to && !p.batch.Stop.Stopped(); c++ {
			w.load(c)
			for r := range xs {
				y := w.dot(&xs[r])
				if bias != nil {
					y += bias[c]
				}
				p.row(o.Out, r)[c] = y
			}
		}
	})
}

// operand is a row of activations as a product with a weight takes it: rounded to whole
// numbers where the weight's are whole, as they are otherwise.
type operand struct {
	x     []float32
	whole ops.WholeRow
}

func newOperand(w *ops.Weight, x []float32) operand {
	a := operand{x: x}
	if w.Type.Group() > 0 {
		a.whole.Round(x)
	}
	return a
}

// factor is one row at a time of a weight.
type factor struct {
	rt    *Runtime
	w     *ops.Weight
	wide  []float32
	codes ops.CodeRow
}

func (r *Runtime) newFactor(w *ops.Weight) *factor { return &factor{rt: r, w: w} }

// load takes row i, counted through the stack of experts.
func (f *factor) load(i int) {
	if f.w.Type.Group() == 0 {
		if f.wide == nil {
			f.wide = make([]float32, f.w.Cols)
		}
		f.rt.widenRow(f.w, i, f.wide)
		return
	}
	n := len(f.w.Data) / (f.w.Rows * max(f.w.Experts, 1))
	if err := f.codes.Decode(f.w.Type, f.w.Cols, f.w.Data[i*n:(i+1)*n]); err != nil {
		panic(fmt.Sprintf("ops/ref: validated weight %q: %v", f.w.Name, err))
	}
}

func (f *factor) dot(x *operand) float32 {
	if f.w.Type.Group() == 0 {
		return ops.Dot(f.wide, x.x)
	}
	return f.codes.Dot(&x.whole)
}
