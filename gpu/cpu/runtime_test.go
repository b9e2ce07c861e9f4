//go:build cgo

package cpu_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"ganglion/gpu/cpu"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

func TestUnknownKernels(t *testing.T) {
	if _, err := cpu.New(cpu.Options{Kernels: "abacus"}); !errors.Is(err, ops.ErrUnsupported) {
		t.Errorf("New with unknown kernels: got %v, want ErrUnsupported", err)
	}
}

// TestDecodeAllocatesNothing runs one-row batches of each read-back.
func TestDecodeAllocatesNothing(t *testing.T) {
	p := productPlan(zeroWeight(tensor.Q8_0, 64, 256), zeroWeight(tensor.Q5_0, 64, 256), zeroWeight(tensor.Q8_0, 2048, 256))
	for _, want := range []ops.Want{{Kind: ops.WantBest}, {Kind: ops.WantTop, K: 40}, {Kind: ops.WantRow}} {
		_, prog := load(t, open(t, ""), p, options(1, 2), 1)
		b := embeddings(1, 1, want.Kind, make([]float32, 256))
		b.Want[0] = want
		var res ops.Result
		if n := testing.AllocsPerRun(50, func() {
			if err := prog.Run(b, &res); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("read-back %d: got %v allocations per run, want 0", want.Kind, n)
		}
	}
}

func TestLoadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := productPlan(zeroWeight(tensor.Q8_0, 1<<15, 256))
	calls := 0
	_, err := open(t, "").Load(ctx, p, options(1, 1), func(done, total int64) {
		calls++
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Load after cancel: got %v, want context.Canceled", err)
	}
	if calls > 3 {
		t.Errorf("progress was called %d times after cancel", calls)
	}
}

func TestProgressReachesTotal(t *testing.T) {
	p := productPlan(zeroWeight(tensor.Q8_0, 1<<13, 256), zeroWeight(tensor.F16, 64, 256))
	var last int64
	r, err := open(t, "").Load(context.Background(), p, options(1, 2), func(done, total int64) {
		if done < last || total != p.WeightBytes() {
			t.Errorf("progress(%d, %d) after %d of %d", done, total, last, p.WeightBytes())
		}
		last = done
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if last != p.WeightBytes() {
		t.Errorf("progress ended at %d, want %d", last, p.WeightBytes())
	}
}

// TestTiedEmbeddingIsNotKeptTwice loads a table that is embedding and output.
func TestTiedEmbeddingIsNotKeptTwice(t *testing.T) {
	b := ops.NewBuilder("tied")
	b.Plan.Vocab, b.Plan.Embed, b.Plan.Context = 4096, 256, 64
	table := b.Weight(zeroWeight(tensor.Q8_0, 4096, 256))
	b.Plan.Logits = b.MatMul("logits", table, nil, b.Outputs(b.Embed(table, 1)))
	r, _ := load(t, open(t, ""), b.Plan, options(1, 1), 1)
	if got, want := r.Memory().Weights, int64(len(table.Data)); got > want+want/8 {
		t.Errorf("weights take %d bytes beside the mapping, want about %d", got, want)
	}
}

// TestNonFiniteActivations must not vanish when they are rounded to 8 bits.
func TestNonFiniteActivations(t *testing.T) {
	p := productPlan(zeroWeight(tensor.Q8_0, 64, 256))
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, prog := load(t, open(t, ""), p, options(1, 1), 1)
		x := make([]float32, 256)
		x[100] = float32(bad)
		var r ops.Result
		if err := prog.Run(embeddings(1, 1, ops.WantBest, x), &r); err != nil || r.Heads[0].Err == nil {
			t.Errorf("an activation of %v gave no error", bad)
		}
	}
}

func TestClose(t *testing.T) {
	b := open(t, "")
	p := productPlan(zeroWeight(tensor.Q8_0, 64, 256))
	r, prog := load(t, b, p, options(1, 2), 1)
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := prog.Run(embeddings(1, 1, ops.WantBest, make([]float32, 256)), &ops.Result{}); !errors.Is(err, ops.ErrClosed) {
		t.Errorf("Run after Close: got %v, want ErrClosed", err)
	}
	if _, err := r.Compile(ops.Shape{Rows: 1, Outs: 1}); !errors.Is(err, ops.ErrClosed) {
		t.Errorf("Compile after Close: got %v, want ErrClosed", err)
	}
	b.Close()
	if _, err := b.Load(context.Background(), p, options(1, 1), nil); !errors.Is(err, ops.ErrClosed) {
		t.Errorf("Load after Close: got %v, want ErrClosed", err)
	}
}
