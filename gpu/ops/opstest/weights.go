package opstest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// zeros is a weight that is filled in once its number of rows is known.
func zeros(cols int) *ops.Weight {
	return &ops.Weight{Name: "zeros", Type: tensor.F16, Cols: cols, Experts: 1}
}

// floats makes a weight of float32 values.
func floats(name string, cols, rows, experts int, values []float32) *ops.Weight {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return &ops.Weight{Name: name, Type: tensor.F32, Cols: cols, Rows: rows, Experts: experts, Data: data}
}

// normal makes a weight of normally distributed float32 values.
func normal(r *rand.Rand, name string, cols, rows, experts int) *ops.Weight {
	return floats(name, cols, rows, experts, vector(r, cols*rows*experts, nil))
}

// quantised makes a weight of any type, see tensor.Random.
func quantised(r *rand.Rand, t tensor.Type, cols, rows, experts int) *ops.Weight {
	return &ops.Weight{Name: "w." + t.String(), Type: t, Cols: cols, Rows: rows, Experts: experts, Data: tensor.Random(r, t, cols*rows*experts)}
}

// wide returns all values of a weight in float64; nil for no weight.
func wide(w *ops.Weight) []float64 {
	if w == nil {
		return nil
	}
	v := make([]float32, w.Cols*w.Rows*max(w.Experts, 1))
	if err := tensor.Dequantize(w.Type, v, w.Data); err != nil {
		panic("opstest: " + err.Error()) // made by this package
	}
	return widen(v)
}

// uniform draws from [lo, hi).
func uniform(lo, hi float64) func(*rand.Rand) float32 {
	return func(r *rand.Rand) float32 { return float32(lo + (hi-lo)*r.Float64()) }
}

// few draws from four values, so that equal values are common.
func few(r *rand.Rand) float32 { return float32(r.IntN(4)) / 2 }
