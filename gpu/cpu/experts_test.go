//go:build cgo

package cpu_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// expertsPlan is one layer of experts as models have it: a router, gate, up and down.
func expertsPlan(rng *rand.Rand, typ tensor.Type, experts, topK, cols, ff int) *ops.Plan {
	b := ops.NewBuilder("experts")
	random := func(typ tensor.Type, rows, cols int) *ops.Weight {
		w := randomWeight(rng, typ, rows, cols)
		if typ == tensor.F16 {
			for i := 0; i < len(w.Data); i += 2 {
				binary.LittleEndian.PutUint16(w.Data[i:], tensor.F32ToF16(float32(rng.NormFloat64()/16)))
			}
		}
		return w
	}
	stack := func(name string, cols, rows int) *ops.Weight {
		w := random(typ, rows*experts, cols)
		w.Name, w.Rows, w.Experts = name, rows, experts
		return b.Weight(w)
	}
	b.Plan.Vocab, b.Plan.Embed, b.Plan.Context = 64, cols, 4096
	x := b.Embed(b.Weight(zeroWeight(tensor.F32, 64, cols)), 1)
	r := &ops.Route{TopK: topK, Norm: true, In: b.MatMul("router", b.Weight(random(tensor.F16, experts, cols)), nil, x),
		IDs: b.Indices("ids", topK), Weights: b.Buffer("weights", topK)}
	b.Add(r)
	multiply := func(w *ops.Weight, in ops.View) ops.View {
		out := b.Buffer(w.Name, topK*w.Rows)
		b.Add(&ops.ExpertMatMul{W: w, IDs: r.IDs, In: in, Out: out})
		return out
	}
	h := b.GLU("glu", ops.SiLU, multiply(stack("gate", cols, ff), x), multiply(stack("up", cols, ff), x))
	y := b.Buffer("sum", cols)
	b.Add(&ops.ExpertSum{IDs: r.IDs, Weights: r.Weights, In: multiply(stack("down", ff, cols), h), Out: y})
	b.Plan.Logits = b.MatMul("logits", b.Weight(random(tensor.Q8_0, 64, cols)), nil, b.Outputs(y))
	return b.Plan
}

// Rows that chose the same expert are multiplied together, and give the bits that they
// give alone: 1 row, 2, and more than are gathered at once, on each instruction set.
func TestExpertsDoNotDependOnNeighbours(t *testing.T) {
	const rows, cols, ff = 70, 256, 256
	for _, kernels := range kernelNames() {
		for _, numerics := range []ops.Numerics{ops.Exact, ops.Fast} {
			for _, typ := range []tensor.Type{tensor.Q4_K, tensor.F16} {
				t.Run(fmt.Sprintf("%s/%v/%v", kernels, numerics, typ), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(1, 2))
					plan := expertsPlan(rng, typ, 5, 2, cols, ff)
					x := make([]float32, rows*cols)
					for i := range x {
						x[i] = float32(rng.NormFloat64())
					}
					o := options(rows, 2)
					o.Numerics = numerics
					run := func(chunk int) (out []float32) {
						rt, _ := load(t, open(t, kernels), plan, o, rows)
						for at := 0; at < rows; at += chunk {
							n := min(chunk, rows-at)
							prog, err := rt.Compile(ops.Shape{Rows: n, Outs: n})
							if err != nil {
								t.Fatal(err)
							}
							var res ops.Result
							if err := prog.Run(embeddings(n, n, ops.WantRow, x[at*cols:(at+n)*cols]), &res); err != nil {
								t.Fatal(err)
							}
							for _, h := range res.Heads {
								out = append(out, h.Row...)
							}
						}
						return out
					}
					want := run(1)
					for _, chunk := range []int{2, 7, rows} {
						for i, got := range run(chunk) {
							if math.Float32bits(got) != math.Float32bits(want[i]) {
								t.Fatalf("%d rows at once: value %d is %v, alone %v", chunk, i, got, want[i])
							}
						}
					}
				})
			}
		}
	}
}

// BenchmarkExperts runs a layer of 32 experts, 4 of them for each row: one row reads
// the weights of its experts, 512 rows multiply.
func BenchmarkExperts(b *testing.B) {
	const experts, topK, cols, ff = 32, 4, 1024, 512
	for _, typ := range []tensor.Type{tensor.Q4_K, tensor.Q8_0, tensor.MXFP4} {
		for _, numerics := range []ops.Numerics{ops.Fast, ops.Exact} {
			for _, rows := range []int{1, 8, 512} {
				b.Run(fmt.Sprintf("%v/%v/%drows", typ, numerics, rows), func(b *testing.B) {
					rng := rand.New(rand.NewPCG(1, 2))
					o := options(rows, runtime.NumCPU())
					o.Numerics = numerics
					_, prog := load(b, open(b, ""), expertsPlan(rng, typ, experts, topK, cols, ff), o, 1)
					x := make([]float32, rows*cols)
					for i := range x {
						x[i] = float32(rng.NormFloat64())
					}
					batch, res := embeddings(rows, 1, ops.WantBest, x), ops.Result{}
					for b.Loop() {
						if err := prog.Run(batch, &res); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(2*3*float64(rows)*topK*cols*ff*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}
