//go:build cgo

package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// exactTypes are all types a matrix can have.
func exactTypes() []tensor.Type { return tensor.Types() }

// TestExactProducts compares exact mode with the functions of gpu/ops bit for bit,
// for every type, with a partly filled tile that ends in a strip of one, two and three of
// four rows, and each number of activation rows that has its own kernel.
func TestExactProducts(t *testing.T) {
	const most = 19
	for _, kernels := range kernelNames() {
		for _, typ := range exactTypes() {
			cols := 512
			if typ.BlockSize() == 1 {
				cols = 77 // not whole vectors
			}
			t.Run(fmt.Sprintf("%s/%v", kernels, typ), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(5, uint64(typ)))
				x := make([]float32, most*cols)
				for i := range x {
					x[i] = float32(rng.NormFloat64())
				}
				for _, rows := range []int{21, 22, 23} {
					w := drawn(rng, typ, rows, cols)
					for _, n := range []int{1, 2, 3, 4, 8, most} {
						checkExact(t, kernels, w, x[:n*cols], n)
					}
				}
			})
		}
	}
}

// drawn is a random matrix of any type: blocks for those of scaleAt, otherwise random
// bytes of which those are kept whose values are finite and moderate.
func drawn(rng *rand.Rand, typ tensor.Type, rows, cols int) *ops.Weight {
	if _, ok := scaleAt[typ]; ok {
		return randomWeight(rng, typ, rows, cols)
	}
	w := zeroWeight(typ, rows, cols)
	step := typ.BlockBytes()
	values := make([]float32, typ.BlockSize())
	for at := 0; at < len(w.Data); {
		block := w.Data[at : at+step]
		for i := range block {
			block[i] = byte(rng.Uint32())
		}
		if err := tensor.Dequantize(typ, values, block); err != nil {
			panic(err)
		}
		if moderate(values) {
			at += step
		}
	}
	return w
}

func moderate(values []float32) bool {
	for _, v := range values {
		if !(math.Abs(float64(v)) < 1e4) {
			return false
		}
	}
	return true
}

func checkExact(t *testing.T, kernels string, w *ops.Weight, x []float32, n int) {
	t.Helper()
	o := options(n, 2)
	o.Numerics = ops.Exact
	_, prog := load(t, open(t, kernels), productPlan(w), o, n)
	var res ops.Result
	if err := prog.Run(embeddings(n, n, ops.WantRow, x), &res); err != nil {
		t.Fatal(err)
	}
	for r, head := range res.Heads {
		want := exactProduct(w, x[r*w.Cols:(r+1)*w.Cols])
		for o, got := range head.Row {
			if math.Float32bits(got) != math.Float32bits(want[o]) {
				t.Fatalf("%d rows: row %d, output %d: got %v (%08x), want %v (%08x)", n, r, o, got, math.Float32bits(got), want[o], math.Float32bits(want[o]))
			}
		}
	}
}

// exactProduct is W·x as gpu/ops defines it.
func exactProduct(w *ops.Weight, x []float32) []float32 {
	y := make([]float32, w.Rows)
	bytes := len(w.Data) / w.Rows
	if w.Type.Group() > 0 {
		var row ops.CodeRow
		var whole ops.WholeRow
		whole.Round(x)
		for o := range y {
			if err := row.Decode(w.Type, w.Cols, w.Data[o*bytes:(o+1)*bytes]); err != nil {
				panic(err)
			}
			y[o] = row.Dot(&whole)
		}
		return y
	}
	dense := make([]float32, w.Cols)
	for o := range y {
		if err := tensor.Dequantize(w.Type, dense, w.Data[o*bytes:(o+1)*bytes]); err != nil {
			panic(err)
		}
		y[o] = ops.Dot(dense, x)
	}
	return y
}

// TestExactActivations compares rows whose blocks are the extremes of what activations
// are rounded to: the largest numbers, blocks that count as zeros, magnitudes far apart,
// ties. Each type is one; codes are random, or the least and the largest there are.
func TestExactActivations(t *testing.T) {
	const cols = 1024
	below := math.Nextafter32(2, 0)
	rng := rand.New(rand.NewPCG(9, 9))
	rows := []func(i int) float32{
		func(int) float32 { return below },
		func(i int) float32 { return []float32{below, -below}[i%2] },
		func(int) float32 { return -below * (1 << 30) },
		func(i int) float32 { return 0x1p-60 * float32(i/32%3) * float32(1+i%2) / 2 },
		func(i int) float32 { return float32(math.Ldexp(rng.NormFloat64(), -rng.IntN(30))) },
		func(i int) float32 { return []float32{1, 0.5 / (1 << 21), 1.5 / (1 << 21), -2.5 / (1 << 21)}[i%4] },
		func(i int) float32 { return 1e-40 * float32(i%3) },
		func(i int) float32 { return float32(math.Copysign(0, float64(i%2)-0.5)) },
	}
	var x []float32
	for _, f := range rows {
		for i := range cols {
			x = append(x, f(i))
		}
	}
	for _, kernels := range kernelNames() {
		for _, typ := range exactTypes() {
			if typ.Group() == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", kernels, typ), func(t *testing.T) {
				w := drawn(rng, typ, 9, cols)
				if typ == tensor.Q8_0 {
					for i := range w.Data[:4*len(w.Data)/9] { // rows of -128
						if i%34 >= 2 {
							w.Data[i] = 0x80
						}
					}
				}
				if at, ok := scaleAt[typ]; ok && typ != tensor.MXFP4 && typ != tensor.Q8_0 { // all codes and scales at their largest
					block := w.Data[:typ.BlockBytes()]
					for i := range block {
						if !slices.Contains(at, i) && !slices.Contains(at, i-1) {
							block[i] = 0xff
						}
					}
				}
				checkExact(t, kernels, w, x, len(rows))
				for r := range rows {
					checkExact(t, kernels, w, x[r*cols:(r+1)*cols], 1)
				}
			})
		}
	}
}
