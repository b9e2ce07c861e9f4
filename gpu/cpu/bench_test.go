//go:build cgo

package cpu_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// benchTypes are the types of the default model and the most common others.
var benchTypes = []tensor.Type{tensor.Q8_0, tensor.Q5_0, tensor.Q4_K, tensor.Q6_K, tensor.Q4_0, tensor.Q5_K, tensor.Q3_K, tensor.Q2_K,
	tensor.IQ4_NL, tensor.F16}

// bench runs a plan of products over and over.
func bench(b *testing.B, rows int, ws []*ops.Weight) {
	_, prog := load(b, open(b, ""), productPlan(ws...), options(rows, runtime.NumCPU()), 1)
	batch := embeddings(rows, 1, ops.WantBest, make([]float32, rows*ws[0].Cols))
	for i := range batch.Embeds {
		batch.Embeds[i] = float32(i%15) - 7
	}
	var res ops.Result
	for b.Loop() {
		if err := prog.Run(batch, &res); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMatVec multiplies one row by matrices that together exceed every cache.
// Compare with BenchmarkRead.
func BenchmarkMatVec(b *testing.B) {
	const size = 128 << 20 // bytes of weights
	for _, typ := range benchTypes {
		for _, shape := range [][2]int{{2048, 2048}, {4096, 4096}} {
			b.Run(fmt.Sprintf("%v/%dx%d", typ, shape[0], shape[1]), func(b *testing.B) {
				w := zeroWeight(typ, shape[0], shape[1])
				ws := []*ops.Weight{}
				bytes := 0
				for ; bytes < size; bytes += len(w.Data) {
					ws = append(ws, zeroWeight(typ, shape[0], shape[1]))
				}
				bench(b, 1, ws)
				b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
			})
		}
	}
}

// BenchmarkMatMul multiplies 512 rows, as a prompt does.
func BenchmarkMatMul(b *testing.B) {
	const rows = 512
	for _, typ := range benchTypes {
		b.Run(fmt.Sprintf("%v/2048x2048", typ), func(b *testing.B) {
			ws := []*ops.Weight{zeroWeight(typ, 2048, 2048), zeroWeight(typ, 2048, 2048), zeroWeight(tensor.Q8_0, 64, 2048)}
			bench(b, rows, ws)
			b.ReportMetric(2*2*rows*2048*2048*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// BenchmarkRead is the ceiling of BenchmarkMatVec: every core reads.
func BenchmarkRead(b *testing.B) {
	data := make([]byte, 128<<20)
	for i := 0; i < len(data); i += 64 {
		data[i] = 1
	}
	n := runtime.NumCPU()
	sums := make([]uint64, n*8)
	for b.Loop() {
		var wg sync.WaitGroup
		for t := range n {
			part := data[len(data)/n*t : len(data)/n*(t+1)]
			wg.Go(func() {
				var s uint64
				for ; len(part) >= 64; part = part[64:] {
					s ^= binary.LittleEndian.Uint64(part) ^ binary.LittleEndian.Uint64(part[32:])
				}
				sums[t*8] += s
			})
		}
		wg.Wait()
	}
	b.ReportMetric(float64(len(data))*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}
