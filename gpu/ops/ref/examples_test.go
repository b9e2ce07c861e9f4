package ref_test

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/tensor"
)

// floats makes a weight of float32 values, [len/cols, cols].
func floats(cols int, values ...float32) *ops.Weight {
	w := &ops.Weight{Name: "w", Type: tensor.F32, Cols: cols, Rows: len(values) / cols, Experts: 1}
	for _, v := range values {
		w.Data = binary.LittleEndian.AppendUint32(w.Data, math.Float32bits(v))
	}
	return w
}

// stacked makes it a stack of experts.
func stacked(w *ops.Weight, experts int) *ops.Weight {
	w.Rows, w.Experts = w.Rows/experts, experts
	return w
}

// run feeds the rows of one sequence to a plan and returns its output rows.
func run(t *testing.T, rows [][]float32, build func(b *ops.Builder, row ops.View) ops.View) [][]float32 {
	t.Helper()
	p := opstest.Plan(t.Name(), len(rows[0]), build)
	n := len(rows)
	rt, err := opstest.Load(ref.New(), p, ops.Options{Slots: 1, Context: n, MaxRows: n, Threads: 1, KV: ops.KVF32})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	prog, err := rt.Compile(ops.Shape{Rows: n, Outs: n})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	var b ops.Batch
	for i, row := range rows {
		b.Tokens, b.Pos, b.Slot = append(b.Tokens, -1), append(b.Pos, int32(i)), append(b.Slot, 0)
		b.Outs, b.Want = append(b.Outs, int32(i)), append(b.Want, ops.Want{Kind: ops.WantRow})
		b.Embeds = append(b.Embeds, row...)
	}
	var r ops.Result
	if err := prog.Run(&b, &r); err != nil {
		t.Fatal(err)
	}
	var out [][]float32
	for _, h := range r.Heads {
		out = append(out, slices.Clone(h.Row))
	}
	return out
}

// TestExamples computes each operation on numbers small enough to follow by hand.
func TestExamples(t *testing.T) {
	const (
		ln2 = 0.6931472
		ln3 = 1.0986123
	)
	tests := []struct {
		name  string
		rows  [][]float32
		build func(b *ops.Builder, x ops.View) ops.View
		want  [][]float64
	}{
		{"matmul", [][]float32{{1, 2, 3}}, func(b *ops.Builder, x ops.View) ops.View {
			return b.MatMul("y", b.Weight(floats(3, 1, 0, -1, 2, 2, 2)), b.Weight(floats(2, 10, 20)), x)
		}, [][]float64{{8, 32}}}, // 1−3+10, 2+4+6+20
		{"rmsnorm", [][]float32{{3, 4, 0, 0}}, func(b *ops.Builder, x ops.View) ops.View {
			return b.RMSNorm("y", b.Weight(floats(4, 1, 2, 1, 1)), 0, 0, x)
		}, [][]float64{{1.2, 3.2, 0, 0}}}, // √(25/4) = 2.5
		{"rmsnorm/groups", [][]float32{{3, 3, 0.5, 0.5}}, func(b *ops.Builder, x ops.View) ops.View {
			return b.RMSNorm("y", nil, 0, 2, x)
		}, [][]float64{{1, 1, 1, 1}}},
		{"layernorm", [][]float32{{1, 3}}, func(b *ops.Builder, x ops.View) ops.View {
			b.Add(&ops.LayerNorm{W: b.Weight(floats(2, 2, 5)), Bias: b.Weight(floats(2, 1, 1)), In: x, Out: x})
			return x
		}, [][]float64{{-1, 6}}}, // mean 2, deviation 1
		{"l2norm", [][]float32{{3, 4}}, func(b *ops.Builder, x ops.View) ops.View {
			b.Add(&ops.L2Norm{In: x, Out: x})
			return x
		}, [][]float64{{0.6, 0.8}}},
		{"binary/repeats", [][]float32{{1, 2, 3, 4, 10, 20}}, func(b *ops.Builder, x ops.View) ops.View {
			out := b.Buffer("y", 4)
			b.Add(&ops.Binary{Kind: ops.MulKind, A: x.Cols(0, 4), B: x.Cols(4, 2), Out: out})
			return out
		}, [][]float64{{10, 40, 30, 80}}},
		{"glu/limits", [][]float32{{9, -1, 9, -9}}, func(b *ops.Builder, x ops.View) ops.View {
			out := b.Buffer("y", 2)
			b.Add(&ops.GLU{Act: ops.ReLU, Limit: 7, UpOffset: 1, Gate: x.Cols(0, 2), Up: x.Cols(2, 2), Out: out})
			return out
		}, [][]float64{{56, 0}}}, // 7·(7+1), 0·(−7+1)
		{"glu/alpha", [][]float32{{ln3, 2}}, func(b *ops.Builder, x ops.View) ops.View {
			out := b.Buffer("y", 1)
			b.Add(&ops.GLU{Alpha: 1, Gate: x.Cols(0, 1), Up: x.Cols(1, 1), Out: out})
			return out
		}, [][]float64{{1.5 * ln3}}}, // σ(ln 3) = 3/4
		{"softcap", [][]float32{{0, 1000, -1000}}, func(b *ops.Builder, x ops.View) ops.View {
			b.Add(&ops.Softcap{Cap: 30, In: x, Out: x})
			return x
		}, [][]float64{{0, 30, -30}}},
		{"rope/pairs", [][]float32{{1, 0, 5}, {1, 0, 5}}, func(b *ops.Builder, x ops.View) ops.View {
			return b.RoPE(b.Table(&ops.RoPETable{NRot: 2, Base: 10000, Scale: math.Pi / 2, Magnitude: 1}), 3, false, x)
		}, [][]float64{{1, 0, 5}, {0, 1, 5}}}, // a quarter turn per position; column 2 stays
		{"rope/halves", [][]float32{{1, 2, 3, 4}, {1, 2, 3, 4}}, func(b *ops.Builder, x ops.View) ops.View {
			// Pair 1 is not rotated: its frequency is divided by 10³⁰.
			return b.RoPE(b.Table(&ops.RoPETable{NRot: 4, Base: 1e4, Scale: math.Pi / 2, Magnitude: 1, Factors: []float32{1, 1e30}}), 4, true, x)
		}, [][]float64{{1, 2, 3, 4}, {-3, 2, 1, 4}}},
		// Scores 0 and ln 3: probabilities 1/4 and 3/4 of the values 8 and 4.
		{"attention", [][]float32{{1, 0, 8}, {1, ln3, 4}}, attention(ops.Attention{}), [][]float64{{8}, {5}}},
		{"attention/window", [][]float32{{1, 0, 8}, {1, ln3, 4}}, attention(ops.Attention{Window: 1}), [][]float64{{8}, {4}}},
		// The sink ln 4 joins the denominator: 8/(1+4), (8+3·4)/(1+3+4).
		{"attention/sink", [][]float32{{1, 0, 8}, {1, ln3, 4}}, attention(ops.Attention{Sinks: floats(1, 2*ln2)}), [][]float64{{1.6}, {2.5}}},
		// The slope of a single head is 2^−largest = ln 2, so one position back halves
		// the weight: (9/2 + 3)/(1/2 + 1).
		{"attention/alibi", [][]float32{{0, 0, 9}, {0, 0, 3}}, attention(ops.Attention{ALiBi: 0.52876637}), [][]float64{{9}, {5}}},
		{"moe", [][]float32{{ln2, 0, ln3, 10}}, func(b *ops.Builder, x ops.View) ops.View {
			return mixture(b, ops.Route{TopK: 2}, x)
		}, [][]float64{{(0.5*3 + 1./3*1) * 10}}}, // probabilities 1/3, 1/6, 1/2; experts ×1, ×2, ×3
		{"moe/norm,scale", [][]float32{{ln2, 0, ln3, 10}}, func(b *ops.Builder, x ops.View) ops.View {
			return mixture(b, ops.Route{TopK: 2, Norm: true, Scale: 2}, x)
		}, [][]float64{{2 * (0.6*3 + 0.4*1) * 10}}},
		{"moe/raw", [][]float32{{ln2, 0, ln3, 10}}, func(b *ops.Builder, x ops.View) ops.View {
			return mixture(b, ops.Route{Kind: ops.RouteRaw, TopK: 2}, x)
		}, [][]float64{{(0.6*3 + 0.4*1) * 10}}},
		{"moe/bias chooses", [][]float32{{0, 0, 0, 10}}, func(b *ops.Builder, x ops.View) ops.View {
			return mixture(b, ops.Route{Kind: ops.RouteSigmoid, TopK: 1, Bias: b.Weight(floats(3, 0, 7, 1))}, x)
		}, [][]float64{{0.5 * 2 * 10}}},
		{"moe/ties", [][]float32{{1, 1, 1, 10}}, func(b *ops.Builder, x ops.View) ops.View {
			return mixture(b, ops.Route{TopK: 2}, x)
		}, [][]float64{{1. / 3 * (1 + 2) * 10}}},
		{"shortconv", [][]float32{{1}, {2}, {3}, {4}}, func(b *ops.Builder, x ops.View) ops.View {
			out := b.Buffer("y", 1)
			b.Add(&ops.ShortConv{W: b.Weight(floats(3, 100, 10, 1)), Bias: b.Weight(floats(1, 0.5)),
				State: b.State(ops.State{Name: "s", Floats: 2}), In: x, Out: out})
			return out
		}, [][]float64{{1.5}, {12.5}, {123.5}, {234.5}}},
		// h = e^(−ln 2)·h + x, y = 3h + 10x.
		{"mamba1", [][]float32{{4, 1, 1, 3}, {0, 1, 1, 3}, {1, 1, 1, 3}}, func(b *ops.Builder, x ops.View) ops.View {
			out := b.Buffer("y", 1)
			b.Add(&ops.Mamba1{A: b.Weight(floats(1, -ln2)), D: b.Weight(floats(1, 10)), N: 1,
				State: b.State(ops.State{Name: "s", Floats: 1}), X: x.Cols(0, 1), Dt: x.Cols(1, 1), B: x.Cols(2, 1), C: x.Cols(3, 1), Out: out})
			return out
		}, [][]float64{{52}, {6}, {16}}},
		// Two channels of one head share dt = 2: decay 1/4, input 2x.
		{"mamba2", [][]float32{{1, 3, 2, 1, 1}, {0, 0, 2, 1, 1}}, func(b *ops.Builder, x ops.View) ops.View {
			out := b.Buffer("y", 2)
			b.Add(&ops.Mamba2{A: b.Weight(floats(1, -ln2)), D: b.Weight(floats(1, 0)), Heads: 1, Groups: 1, N: 1,
				State: b.State(ops.State{Name: "s", Floats: 2}), X: x.Cols(0, 2), Dt: x.Cols(2, 1), B: x.Cols(3, 1), C: x.Cols(4, 1), Out: out})
			return out
		}, [][]float64{{2, 6}, {0.5, 1.5}}},
		// Key and query are 1 and β is ½: M is halved, then goes halfway to the value:
		// 0+(8−0)/2 = 4, 2+(6−2)/2 = 4, 2+(2−2)/2 = 2; the outputs are 3M.
		{"gateddelta", [][]float32{{1, 1, 8, -ln2, 0.5}, {1, 1, 6, -ln2, 0.5}, {1, 1, 2, -ln2, 0.5}}, func(b *ops.Builder, x ops.View) ops.View {
			out := b.Buffer("y", 1)
			b.Add(&ops.GatedDelta{KHeads: 1, VHeads: 1, Dim: 1, Scale: 3, State: b.State(ops.State{Name: "s", Floats: 1}),
				Q: x.Cols(0, 1), K: x.Cols(1, 1), V: x.Cols(2, 1), Gate: x.Cols(3, 1), Beta: x.Cols(4, 1), Out: out})
			return out
		}, [][]float64{{12}, {12}, {6}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, tt.rows, tt.build)
			for r, row := range tt.want {
				for c, want := range row {
					if g := float64(got[r][c]); math.Abs(g-want) > 1e-5*(1+math.Abs(want)) {
						t.Errorf("row %d, column %d: got %v, want %v", r, c, g, want)
					}
				}
			}
		})
	}
}

// attention builds one head of width 1 over rows of query, key and value.
func attention(a ops.Attention) func(b *ops.Builder, x ops.View) ops.View {
	return func(b *ops.Builder, x ops.View) ops.View {
		if a.Sinks != nil {
			b.Weight(a.Sinks)
		}
		op := a
		op.Cache = b.Cache(ops.Cache{Name: "kv", KVHeads: 1, KeyDim: 1, ValueDim: 1, Window: a.Window})
		b.Add(&ops.KVStore{Cache: op.Cache, K: x.Cols(1, 1), V: x.Cols(2, 1)})
		op.Heads, op.Scale, op.Q, op.Out = 1, 1, x.Cols(0, 1), b.Buffer("y", 1)
		b.Add(&op)
		return op.Out
	}
}

// mixture builds three experts that multiply column 3 by 1, 2 and 3; columns 0 to 2
// are the router's logits.
func mixture(b *ops.Builder, r ops.Route, x ops.View) ops.View {
	r.In, r.IDs, r.Weights = x.Cols(0, 3), b.Indices("ids", r.TopK), b.Buffer("weights", r.TopK)
	b.Add(&r)
	each, out := b.Buffer("each", r.TopK), b.Buffer("y", 1)
	b.Add(&ops.ExpertMatMul{W: b.Weight(stacked(floats(1, 1, 2, 3), 3)), IDs: r.IDs, In: x.Cols(3, 1), Out: each})
	b.Add(&ops.ExpertSum{IDs: r.IDs, Weights: r.Weights, In: each, Out: out})
	return out
}

// TestPositionBeyondTable gives an error, for learned positions end.
func TestPositionBeyondTable(t *testing.T) {
	p := opstest.Plan("positions", 2, func(b *ops.Builder, _ ops.View) ops.View {
		out := b.Buffer("y", 2)
		b.Add(&ops.Embed{Table: b.Weight(floats(2, 1, 2, 3, 4)), Scale: 1, ByPosition: true, Out: out})
		return out
	})
	rt, err := ref.New().Load(context.Background(), p, ops.Options{Slots: 1, Context: 3, MaxRows: 1, Threads: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	prog, err := rt.Compile(ops.Shape{Rows: 1, Outs: 1})
	if err != nil {
		t.Fatal(err)
	}
	for pos, ok := range []bool{true, true, false} {
		err := prog.Run(&ops.Batch{Tokens: []int32{0}, Pos: []int32{int32(pos)}, Slot: []int32{0}}, &ops.Result{})
		if (err == nil) != ok {
			t.Errorf("position %d of a table of 2: %v", pos, err)
		}
	}
}

// TestScratchIsCounted follows the memory of programs from opening to closing.
func TestScratchIsCounted(t *testing.T) {
	p := opstest.Plan("pass", 10, func(_ *ops.Builder, row ops.View) ops.View { return row })
	rt, err := ref.New().Load(context.Background(), p, ops.Options{Slots: 1, Context: 4, MaxRows: 4, Threads: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	before := rt.Memory().Scratch
	prog, err := rt.Compile(ops.Shape{Rows: 4, Outs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rt.Memory().Scratch-before, int64((4+2)*10*4); got != want {
		t.Errorf("a program for 4 rows and 2 outputs of 10 columns holds %d bytes, want %d", got, want)
	}
	prog.Close()
	prog.Close()
	if got := rt.Memory().Scratch; got != before {
		t.Errorf("after closing it %d bytes are left, want %d", got, before)
	}
}
