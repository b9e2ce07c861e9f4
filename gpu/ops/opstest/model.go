package opstest

import (
	"fmt"
	"math"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/tensor"
)

// Dimensions of the small model.
const (
	modelVocab   = 97
	modelWidth   = 64
	modelHeads   = 4
	modelKV      = 2
	modelHeadDim = 32
	modelHidden  = 96
	modelWindow  = 6
)

// smallModel is a plan with the parts of a transformer: two attention layers, one of
// them windowed, a short convolution between them, fused projections read through
// views, and buffers that share memory in NewLayout. Its matrices have types that
// models are made of.
func smallModel() *ops.Plan {
	r := random("model")
	b := ops.NewBuilder("model")
	weight := func(t tensor.Type, cols, rows int) *ops.Weight { return b.Weight(quantised(r, t, cols, rows, 1)) }
	norm := func(n int) *ops.Weight { return b.Weight(floats("norm", n, 1, 1, vector(r, n, uniform(0.5, 1.5)))) }
	table := b.Table(&ops.RoPETable{NRot: modelHeadDim, Base: 10000, Scale: 1, Magnitude: 1})

	emb := weight(tensor.Q8_0, modelWidth, modelVocab)
	x := b.Embed(emb, 2)
	for layer, window := range []int{modelWindow, 0} {
		if layer == 1 {
			state := b.State(ops.State{Name: "conv", Floats: 2 * modelWidth})
			out := b.Buffer("conv", modelWidth)
			b.Add(&ops.ShortConv{W: b.Weight(normal(r, "conv", 3, modelWidth, 1)), State: state,
				In: b.RMSNorm("n", norm(modelWidth), 1e-6, 0, x), Out: out})
			x = b.Sum("x", x, out)
		}
		n := b.RMSNorm("n", norm(modelWidth), 1e-6, 0, x)
		qw, kw := modelHeads*modelHeadDim, modelKV*modelHeadDim
		qkv := b.MatMul("qkv", weight(tensor.Q8_0, modelWidth, qw+2*kw), nil, n)
		q := b.RoPE(table, modelHeadDim, true, b.RMSNorm("q", norm(modelHeadDim), 1e-6, modelHeadDim, qkv.Cols(0, qw)))
		k := b.RoPE(table, modelHeadDim, true, b.RMSNorm("k", norm(modelHeadDim), 1e-6, modelHeadDim, qkv.Cols(qw, kw)))
		c := b.Cache(ops.Cache{Name: "kv", KVHeads: modelKV, KeyDim: modelHeadDim, ValueDim: modelHeadDim, Window: window})
		b.Add(&ops.KVStore{Cache: c, K: k, V: qkv.Cols(qw+kw, kw)})
		att := b.Buffer("att", qw)
		b.Add(&ops.Attention{Cache: c, Heads: modelHeads, Scale: 0.25, Window: window, Q: q, Out: att})
		x = b.Sum("x", x, b.RMSNorm("n", norm(modelWidth), 1e-6, 0, b.MatMul("o", weight(tensor.Q4_0, qw, modelWidth), nil, att)))
		n = b.RMSNorm("n", norm(modelWidth), 1e-6, 0, x)
		up := b.MatMul("gateup", weight(tensor.F16, modelWidth, 2*modelHidden), nil, n)
		ff := b.GLU("glu", ops.GELU, up.Cols(0, modelHidden), up.Cols(modelHidden, modelHidden))
		x = b.Sum("x", x, b.RMSNorm("n", norm(modelWidth), 1e-6, 0, b.MatMul("down", weight(tensor.Q5_0, modelHidden, modelWidth), nil, ff)))
	}
	out := b.Outputs(x)
	logits := b.MatMul("logits", emb, nil, b.RMSNorm("n", norm(modelWidth), 1e-6, 0, out))
	b.Add(&ops.Softcap{Cap: 30, In: logits, Out: logits})
	b.Plan.Vocab, b.Plan.Embed, b.Plan.Context, b.Plan.Logits = modelVocab, modelWidth, 4096, logits
	return b.Plan
}

// modelFast bounds the normalised square error of the small model in fast mode: a
// dot product with 8-bit activations whose largest is three standard deviations errs
// by (3/(254·√3))² = 5·10⁻⁵ of its own square; ten of them follow one another, and
// the norms and the softmax may enlarge each tenfold.
const modelFast = 10 * 10 * 5e-5

func modelChecks() []check {
	return []check{
		{name: "model/results", run: checkModel},
		{name: "model/two-programs", run: checkTwoPrograms},
		{name: "model/rollback", run: checkRollback},
		{name: "model/positions-restart", run: checkRestart},
		{name: "model/bad-neighbour", run: checkBadNeighbour},
		{name: "attention/per-output", run: checkPerOutput},
		{name: "attention/span-rows", run: checkSpanRows},
	}
}

// modelTokens are the tokens of some sequences.
func modelTokens(seqs []int) [][]int32 {
	r := random("tokens")
	var t [][]int32
	for _, n := range seqs {
		t = append(t, randomTokens(r, n, modelVocab))
	}
	return t
}

// runModel runs token sequences through the small model.
func runModel(b ops.Backend, mode ops.Numerics, threads int, s schedule, tokens [][]int32) (outputs, error) {
	f := feed{plan: smallModel(), numerics: mode, threads: threads, schedule: s,
		token: func(seq, pos int) int32 { return tokens[seq][pos] }}
	return f.run(b)
}

// checkModel compares all schedules with each other and with ref.
func checkModel(b ops.Backend) error {
	seqs := []int{70, 21, 1}
	tokens := modelTokens(seqs)
	schedules := schedulesOf(seqs)
	want, err := runModel(ref.New(), ops.Exact, 1, schedules[0], tokens)
	if err != nil {
		return fmt.Errorf("ref: %w", err)
	}
	for _, mode := range modes(b) {
		var first outputs
		for i, s := range schedules {
			got, err := runModel(b, mode, 1+i%2, s, tokens)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", mode, s.name, err)
			}
			if i == 0 {
				first = got
			}
			if err := sameBits(got, first); err != nil {
				return fmt.Errorf("%s: %s differs from whole: %w", mode, s.name, err)
			}
		}
		if mode == ops.Exact {
			if err := sameBits(first, want); err != nil {
				return fmt.Errorf("exact: differs from ref: %w", err)
			}
		}
		if e := squareError(first, want); !(e <= modelFast) {
			return fmt.Errorf("%s: normalised square error against ref is %.3g, %.3g is allowed", mode, e, modelFast)
		}
	}
	return nil
}

// squareError is Σ(got−want)² / Σwant².
func squareError(got, want outputs) float64 {
	var diff, size float64
	for s := range want {
		for pos := range want[s] {
			for i, w := range want[s][pos] {
				diff += math.Pow(float64(got[s][pos][i])-float64(w), 2)
				size += float64(w) * float64(w)
			}
		}
	}
	return diff / size
}

// tokenBatch makes a batch of consecutive positions of one slot.
func tokenBatch(tokens []int32, from, slot int) *ops.Batch {
	var b ops.Batch
	for i, t := range tokens {
		appendRow(&b, t, from+i, slot)
	}
	return &b
}

// checkBadNeighbour runs a sequence beside one whose rows are NaN and unwanted, and
// then another one in the slot that is full of NaN: neither may notice.
func checkBadNeighbour(b ops.Backend) error {
	tokens := modelTokens([]int{6, 6})
	prog, done, err := open(b, smallModel(), modelOptions())
	if err != nil {
		return err
	}
	defer done()
	batch := tokenBatch(tokens[0], 0, 0)
	batch.Embeds = make([]float32, 16*modelWidth)
	for i := range batch.Embeds {
		batch.Embeds[i] = float32(math.NaN())
	}
	for pos := range 10 {
		batch.Tokens = append(batch.Tokens, -1)
		batch.Pos, batch.Slot = append(batch.Pos, int32(pos)), append(batch.Slot, 1)
	}
	beside, err := runRows(prog, batch)
	if err != nil {
		return err
	}
	after, err := runRows(prog, tokenBatch(tokens[1], 0, 1))
	if err != nil {
		return fmt.Errorf("after NaN in the slot: %w", err)
	}
	want, err := runModel(b, ops.Fast, 1, schedulesOf([]int{6, 6})[0], tokens)
	if err != nil {
		return err
	}
	return sameBits(outputs{beside, after}, want)
}
