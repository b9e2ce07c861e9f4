package ref

import (
	"context"
	"fmt"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// smallWeight is the largest number of elements that is kept widened; larger
// matrices are widened row by row each time they are used. Norms, biases, and
// convolution kernels are small.
const smallWeight = 1 << 16

// widenWeights keeps the float32 values of the small weights.
func (r *Runtime) widenWeights(ctx context.Context, progress func(done, total int64)) error {
	r.vectors = make(map[*ops.Weight][]float32)
	done, total := int64(0), r.plan.WeightBytes()
	for _, w := range r.plan.Weights {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("ops/ref: load: %w", err)
		}
		if elements(w) <= smallWeight {
			r.vectors[w] = widen(w)
		}
		done += int64(len(w.Data))
		if progress != nil {
			progress(done, total)
		}
	}
	return nil
}

func elements(w *ops.Weight) int { return w.Cols * w.Rows * max(w.Experts, 1) }

func widen(w *ops.Weight) []float32 {
	v := make([]float32, elements(w))
	dequantize(w, v, w.Data)
	return v
}

// vector is a weight widened whole; nil for no weight.
func (r *Runtime) vector(w *ops.Weight) []float32 {
	if w == nil {
		return nil
	}
	if v, ok := r.vectors[w]; ok {
		return v
	}
	return widen(w)
}

// widenRow writes row i of a weight (counted through the stack of experts) to dst.
func (r *Runtime) widenRow(w *ops.Weight, i int, dst []float32) {
	if v, ok := r.vectors[w]; ok {
		copy(dst[:w.Cols], v[i*w.Cols:])
		return
	}
	n := len(w.Data) / (w.Rows * max(w.Experts, 1))
	dequantize(w, dst[:w.Cols], w.Data[i*n:(i+1)*n])
}

// dequantize cannot fail for a weight that Plan.Validate accepted.
func dequantize(w *ops.Weight, dst []float32, src []byte) {
	if err := tensor.Dequantize(w.Type, dst, src); err != nil {
		panic(fmt.Sprintf("ops/ref: validated weight %q: %v", w.Name, err))
	}
}
