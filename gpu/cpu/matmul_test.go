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

// TestPackedProducts checks every packed layout where rounding activations to 8 bits
// loses nothing: they are whole numbers and each block of 32 holds a 127, so that its
// scale is 1. What is left is float32 rounding, and a code, scale or offset in the
// wrong place shows as an error of its own size.
func TestPackedProducts(t *testing.T) {
	const cols, rows, batch = 512, 21, 7 // 21: the last tile is partly filled
	for _, kernels := range kernelNames() {
		for typ := range scaleAt {
			t.Run(fmt.Sprintf("%s/%v", kernels, typ), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, uint64(typ)))
				w := randomWeight(rng, typ, rows, cols)
				x := make([]float32, batch*cols)
				for i := range x {
					x[i] = float32(rng.IntN(255) - 127)
					if i%32 == 5 {
						x[i] = 127
					}
				}
				_, prog := load(t, open(t, kernels), productPlan(w), options(batch, 2), batch)
				var res ops.Result
				if err := prog.Run(embeddings(batch, batch, ops.WantRow, x), &res); err != nil {
					t.Fatal(err)
				}
				for r, head := range res.Heads {
					checkProduct(t, w, x[r*cols:(r+1)*cols], head.Row)
				}
			})
		}
	}
}

// checkProduct compares W·x with float64; float32 sums of scaled blocks err by some
// units of the sum of magnitudes.
func checkProduct(t *testing.T, w *ops.Weight, x, got []float32) {
	t.Helper()
	dense := make([]float32, w.Cols*w.Rows)
	if err := tensor.Dequantize(w.Type, dense, w.Data); err != nil {
		t.Fatal(err)
	}
	for o := range w.Rows {
		want, mag := 0.0, 0.0
		for i, v := range dense[o*w.Cols : (o+1)*w.Cols] {
			want += float64(v) * float64(x[i])
			mag += math.Abs(float64(v) * float64(x[i]))
		}
		// A minimum is added as whole sums of a block, whose magnitude is larger than
		// that of the terms it belongs to.
		if bound := 32 * mag / (1 << 24); math.Abs(float64(got[o])-want) > bound {
			t.Fatalf("row %d: got %v, want %v, off by %.3g where %.3g is allowed", o, got[o], want, math.Abs(float64(got[o])-want), bound)
		}
	}
}

// TestRequantised bounds what types without a layout of their own lose.
func TestRequantised(t *testing.T) {
	const cols, rows = 512, 9
	rng := rand.New(rand.NewPCG(2, 3))
	w := randomWeight(rng, tensor.Q4_K, rows, cols) // only to draw values from
	dense := make([]float32, rows*cols)
	if err := tensor.Dequantize(w.Type, dense, w.Data); err != nil {
		t.Fatal(err)
	}
	tq := &ops.Weight{Name: "tq", Type: tensor.TQ2_0, Cols: cols, Rows: rows, Experts: 1}
	for range rows * cols / 256 {
		block := make([]byte, tensor.TQ2_0.BlockBytes())
		for i := range block[:64] {
			block[i] = byte(rng.IntN(3) | rng.IntN(3)<<2 | rng.IntN(3)<<4 | rng.IntN(3)<<6)
		}
		block[65] = 0x28 // 2⁻⁵
		tq.Data = append(tq.Data, block...)
	}
	x := make([]float32, cols)
	for i := range x {
		x[i] = float32(rng.IntN(255) - 127)
		if i%32 == 0 {
			x[i] = 127
		}
	}
	_, prog := load(t, open(t, ""), productPlan(tq), options(1, 1), 1)
	var res ops.Result
	if err := prog.Run(embeddings(1, 1, ops.WantRow, x), &res); err != nil {
		t.Fatal(err)
	}
	checkProduct(t, tq, x, res.Heads[0].Row) // three levels are exact in 8 bits
}

// TestRowsAreIndependent compares rows of one batch with the same rows alone: the
// kernels for one, two and four rows must agree bit for bit.
func TestRowsAreIndependent(t *testing.T) {
	const cols, batch = 512, 7
	types := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16}
	for typ := range scaleAt {
		types = append(types, typ)
	}
	for _, kernels := range kernelNames() {
		for _, typ := range types {
			t.Run(fmt.Sprintf("%s/%v", kernels, typ), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(4, uint64(typ)))
				w := zeroWeight(typ, 13, cols)
				if _, ok := scaleAt[typ]; ok {
					w = randomWeight(rng, typ, 13, cols)
				} else {
					for i := range w.Data { // small exponents only
						w.Data[i] = byte(rng.IntN(63))
					}
				}
				x := make([]float32, batch*cols)
				for i := range x {
					x[i] = float32(rng.NormFloat64())
				}
				b := open(t, kernels)
				_, together := load(t, b, productPlan(w), options(batch, 2), batch)
				_, alone := load(t, b, productPlan(w), options(1, 1), 1)
				var all, one ops.Result
				if err := together.Run(embeddings(batch, batch, ops.WantRow, x), &all); err != nil {
					t.Fatal(err)
				}
				for r := range batch {
					if err := alone.Run(embeddings(1, 1, ops.WantRow, x[r*cols:]), &one); err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(all.Heads[r].Row, one.Heads[0].Row) {
						t.Fatalf("row %d of %d differs from the same row alone", r, batch)
					}
				}
			})
		}
	}
}
