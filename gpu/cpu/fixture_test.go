//go:build cgo

package cpu_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"ganglion/gpu/cpu"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// scaleAt are the offsets of the halves in a block that scale it.
var scaleAt = map[tensor.Type][]int{
	tensor.Q4_0: {0}, tensor.Q4_1: {0, 2}, tensor.Q5_0: {0}, tensor.Q5_1: {0, 2}, tensor.Q8_0: {0},
	tensor.Q2_K: {80, 82}, tensor.Q3_K: {108}, tensor.Q4_K: {0, 2}, tensor.Q5_K: {0, 2}, tensor.Q6_K: {208},
	tensor.IQ4_NL: {0}, tensor.IQ4_XS: {0}, tensor.MXFP4: nil,
}

// randomWeight is a matrix of random codes with moderate scales.
func randomWeight(rng *rand.Rand, typ tensor.Type, rows, cols int) *ops.Weight {
	n, err := tensor.RowBytes(typ, cols)
	if err != nil {
		panic(err)
	}
	w := &ops.Weight{Name: typ.String(), Type: typ, Cols: cols, Rows: rows, Experts: 1, Data: make([]byte, n*rows)}
	for i := range w.Data {
		w.Data[i] = byte(rng.Uint32())
	}
	for at := 0; at < len(w.Data); at += typ.BlockBytes() {
		for _, o := range scaleAt[typ] {
			binary.LittleEndian.PutUint16(w.Data[at+o:], tensor.F32ToF16(rng.Float32()/64+1.0/256))
		}
		if typ == tensor.MXFP4 {
			w.Data[at] = byte(120 + rng.IntN(8))
		}
	}
	return w
}

// zeroWeight is a matrix of zeros in memory of its own: pages that were never written
// would all be the same page of zeros, and benchmarks would read it from cache.
func zeroWeight(typ tensor.Type, rows, cols int) *ops.Weight {
	n, err := tensor.RowBytes(typ, cols)
	if err != nil {
		panic(err)
	}
	w := &ops.Weight{Name: typ.String(), Type: typ, Cols: cols, Rows: rows, Experts: 1, Data: make([]byte, n*rows)}
	for i := 0; i < len(w.Data); i += 4096 {
		w.Data[i] = 0
	}
	return w
}

// productPlan multiplies the embeddings of a batch by each of the matrices; the
// product with the last is the logits.
func productPlan(ws ...*ops.Weight) *ops.Plan {
	b := ops.NewBuilder("product")
	cols := ws[0].Cols
	last := ws[len(ws)-1]
	b.Plan.Vocab, b.Plan.Embed, b.Plan.Context = last.Rows, cols, 4096
	table := b.Weight(zeroWeight(tensor.F32, last.Rows, cols))
	x := b.Embed(table, 1)
	for _, w := range ws[:len(ws)-1] {
		b.MatMul(w.Name, b.Weight(w), nil, x)
	}
	b.Plan.Logits = b.MatMul("logits", b.Weight(last), nil, b.Outputs(x))
	return b.Plan
}

// load loads a plan and compiles it for rows rows and as many outputs.
func load(t testing.TB, b *cpu.Backend, p *ops.Plan, o ops.Options, outs int) (ops.Runtime, ops.Program) {
	t.Helper()
	r, err := b.Load(context.Background(), p, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	prog, err := r.Compile(ops.Shape{Rows: o.MaxRows, Outs: outs})
	if err != nil {
		t.Fatal(err)
	}
	return r, prog
}

// options are for one sequence and batches of rows rows.
func options(rows, threads int) ops.Options {
	return ops.Options{Slots: 1, Context: 4096, MaxRows: rows, Threads: threads}
}

// embeddings is a batch of rows given as embeddings whose last outs rows are wanted.
func embeddings(rows, outs int, want ops.WantKind, x []float32) *ops.Batch {
	b := &ops.Batch{Embeds: x}
	for i := range rows {
		b.Tokens = append(b.Tokens, -1)
		b.Pos = append(b.Pos, int32(i))
		b.Slot = append(b.Slot, 0)
		if i >= rows-outs {
			b.Outs = append(b.Outs, int32(i))
			b.Want = append(b.Want, ops.Want{Kind: want})
		}
	}
	return b
}
