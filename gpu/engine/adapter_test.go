package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/engine"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/tensor"
)

// files are adapters as the engine takes them, named a, b, …
func files(adapters ...lora) []engine.AdapterFile {
	var out []engine.AdapterFile
	for i, l := range adapters {
		out = append(out, engine.AdapterFile{Path: l.path, Name: string(rune('a' + i))})
	}
	return out
}

// adapted is every row of logits of a cold sequence with adapters.
func adapted(t testing.TB, e *engine.Engine, tokens []int32, chunk int, adapters ...engine.AdapterScale) (out []float32) {
	t.Helper()
	slot, _, ok := e.Acquire([]int32{-1, -1}, engine.Salt(adapters))
	if !ok {
		t.Fatal("no free slot")
	}
	defer e.Release(slot)
	if err := e.SetAdapters(slot, adapters); err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(tokens, chunk) {
		heads, err := e.Run(wantAll(slot, part))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range heads {
			out = append(out, h.Row...)
		}
	}
	return out
}

// wantAll are rows of one slot whose logits are all wanted.
func wantAll(slot int, tokens []int32) []engine.Row {
	var rows []engine.Row
	for _, id := range tokens {
		rows = append(rows, engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}})
	}
	return rows
}

// runs are the ways of computing that adapters are tested in.
var runs = []struct {
	backend  string
	numerics ops.Numerics
}{{"ref", ops.Exact}, {"cpu", ops.Exact}, {"cpu", ops.Fast}}

// An adapter does what merging it into the weights does, on every kind of weight.
func TestAdapterEqualsMergedWeights(t *testing.T) {
	set := archtest.Golden(t)
	const scale = 0.7
	for _, tt := range []struct {
		model string
		typ   tensor.Type
		rank  int
	}{
		{"llama-dense", tensor.F32, 4}, {"llama-dense", tensor.Q8_0, 32}, {"llama-tied", tensor.F16, 3}, {"llama-moe", tensor.BF16, 5},
		{"gemma3-dense", tensor.F16, 8}, {"qwen2-dense", tensor.F32, 1}, {"qwen3-dense", tensor.F16, 16},
	} {
		entry := set.Find(t, tt.model)
		base := set.Path(t, tt.model)
		l := newLoRA(t, base, 11, tt.rank, tt.typ, everyMatrix)
		whole := merged(t, base, []lora{l}, []float64{scale})
		want := allLogits(t, open(t, "ref", engine.Config{Path: whole, Numerics: ops.Exact}), set.Tokens, len(set.Tokens))
		for _, run := range runs {
			t.Run(tt.model+"/"+tt.typ.String()+"/"+run.backend+"/"+run.numerics.String(), func(t *testing.T) {
				e := open(t, run.backend, engine.Config{Path: base, Adapters: files(l), Numerics: run.numerics, Threads: 2})
				bound := entry.MaxExact
				if run.numerics == ops.Fast {
					bound = entry.MaxFast
				}
				got := adapted(t, e, set.Tokens, len(set.Tokens), engine.AdapterScale{Scale: scale})
				if d := archtest.NMSE(got, want); !(d <= bound) {
					t.Errorf("NMSE %.3g against merged weights, bound %.3g", d, bound)
				} else {
					t.Logf("NMSE %.3g, bound %.3g", d, bound)
				}
				// The partner: a strength that is off by a twentieth is seen.
				wrong := adapted(t, e, set.Tokens, len(set.Tokens), engine.AdapterScale{Scale: scale * 1.05})
				if d := archtest.NMSE(wrong, want); d <= bound {
					t.Errorf("NMSE %.3g with a strength that is 5 %% off, want more than %.3g", d, bound)
				}
			})
		}
	}
}

// Where a matrix has a scale of its own, the update is of the scaled matrix.
func TestAdapterOfAScaledMatrix(t *testing.T) {
	set := archtest.Golden(t)
	const name, own, scale = "blk.0.attn_q", 0.5, 0.7
	base := merged(t, set.Path(t, "llama-dense"), nil, nil, gguftest.Tensor{Name: name + ".scale", Dims: []int{1}, Data: gguftest.F32(own)})
	l := newLoRA(t, base, 1, 4, tensor.F32, func(n string) bool { return n == name+".weight" })
	whole := merged(t, base, []lora{l}, []float64{scale / own})
	want := allLogits(t, open(t, "ref", engine.Config{Path: whole, Numerics: ops.Exact}), set.Tokens, len(set.Tokens))
	e := open(t, "cpu", engine.Config{Path: base, Adapters: files(l), Numerics: ops.Exact})
	got := adapted(t, e, set.Tokens, len(set.Tokens), engine.AdapterScale{Scale: scale})
	if d := archtest.NMSE(got, want); !(d <= set.Find(t, "llama-dense").MaxExact) {
		t.Errorf("NMSE %.3g", d)
	}
}

// Two adapters add up, each with its own strength.
func TestTwoAdaptersAtOnce(t *testing.T) {
	set := archtest.Golden(t)
	base := set.Path(t, "llama-dense")
	a := newLoRA(t, base, 1, 4, tensor.F32, func(name string) bool { return !strings.Contains(name, "attn_k") })
	b := newLoRA(t, base, 2, 6, tensor.F16, func(name string) bool { return !strings.Contains(name, "ffn_up") })
	whole := merged(t, base, []lora{a, b}, []float64{0.5, -0.8})
	want := allLogits(t, open(t, "ref", engine.Config{Path: whole, Numerics: ops.Exact}), set.Tokens, len(set.Tokens))
	for _, run := range runs {
		e := open(t, run.backend, engine.Config{Path: base, Adapters: files(a, b), Numerics: run.numerics, Threads: 2})
		got := adapted(t, e, set.Tokens, 16, engine.AdapterScale{ID: 1, Scale: -0.8}, engine.AdapterScale{ID: 0, Scale: 0.5})
		bound := set.Find(t, "llama-dense").MaxExact
		if run.numerics == ops.Fast {
			bound = set.Find(t, "llama-dense").MaxFast
		}
		if d := archtest.NMSE(got, want); !(d <= bound) {
			t.Errorf("%s, %s: NMSE %.3g, bound %.3g", run.backend, run.numerics, d, bound)
		}
		swapped := adapted(t, e, set.Tokens, 16, engine.AdapterScale{ID: 0, Scale: -0.8}, engine.AdapterScale{ID: 1, Scale: 0.5})
		if d := archtest.NMSE(swapped, want); d <= bound {
			t.Errorf("%s, %s: NMSE %.3g with the strengths swapped, want more than %.3g", run.backend, run.numerics, d, bound)
		}
	}
}

// Requests with other adapters share batches: each gets the bits it gets alone, in any
// chunks, and the one without adapters those of a model that has none loaded.
func TestAdaptersBesideEachOther(t *testing.T) {
	set := archtest.Golden(t)
	for _, name := range []string{"llama-moe", "gemma3-dense"} {
		base := set.Path(t, name)
		a, b := newLoRA(t, base, 1, 4, tensor.F32, everyMatrix), newLoRA(t, base, 2, 6, tensor.F16, everyMatrix)
		requests := [][]engine.AdapterScale{
			nil, {{ID: 0, Scale: 0.5}}, {{ID: 1, Scale: -1}, {ID: 0, Scale: 2}}, {{ID: 1, Scale: 0}},
		}
		for _, run := range runs {
			t.Run(name+"/"+run.backend+"/"+run.numerics.String(), func(t *testing.T) {
				c := engine.Config{Path: base, Numerics: run.numerics, Threads: 2, Context: 64, Slots: len(requests)}
				plain := adapted(t, open(t, run.backend, c), set.Tokens, len(set.Tokens))
				c.Adapters = files(a, b)
				e := open(t, run.backend, c)
				got := together(t, e, set.Tokens, requests)
				for i, r := range requests {
					want := plain
					if i == 1 || i == 2 {
						want = adapted(t, e, set.Tokens, 7, r...)
						if slices.Equal(want, plain) {
							t.Errorf("request %d: the adapter changed nothing", i)
						}
					}
					same(t, got[i], want, "request", i)
				}
			})
		}
	}
}

// together runs the same tokens for all requests in shared batches of growing size.
func together(t *testing.T, e *engine.Engine, tokens []int32, requests [][]engine.AdapterScale) [][]float32 {
	t.Helper()
	slots := make([]int, len(requests))
	for i, r := range requests {
		slots[i], _, _ = e.Acquire([]int32{-1, -1}, engine.Salt(r))
		defer e.Release(slots[i])
		if err := e.SetAdapters(slots[i], r); err != nil {
			t.Fatal(err)
		}
	}
	out := make([][]float32, len(requests))
	for at, n := 0, 1; at < len(tokens); at, n = at+n, n+2 {
		part := tokens[at:min(at+n, len(tokens))]
		var rows []engine.Row
		for _, slot := range slots {
			rows = append(rows, wantAll(slot, part)...)
		}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range heads {
			out[i/len(part)] = append(out[i/len(part)], h.Row...)
		}
	}
	return out
}

// A prompt that is in place under other adapters is not reused.
func TestAdaptersDoNotShareAPrefix(t *testing.T) {
	set := archtest.Golden(t)
	base := set.Path(t, "llama-dense")
	l := newLoRA(t, base, 3, 4, tensor.F32, everyMatrix)
	e := open(t, "cpu", engine.Config{Path: base, Adapters: files(l), Numerics: ops.Exact, Threads: 2, Slots: 1})
	last := func(salt uint64, scale float32) ([]float32, int) {
		slot, cached, _ := e.Acquire(set.Tokens, salt)
		defer e.Release(slot)
		if err := e.SetAdapters(slot, []engine.AdapterScale{{Scale: scale}}); err != nil {
			t.Fatal(err)
		}
		heads, err := e.Run(wantAll(slot, set.Tokens[cached:]))
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(heads[len(heads)-1].Row), cached
	}
	salt := func(scale float32) uint64 { return engine.Salt([]engine.AdapterScale{{Scale: scale}}) }
	cold, _ := last(salt(1), 1)
	warm, n := last(salt(1), 1)
	if n == 0 {
		t.Error("the same adapter did not find its own prefix")
	}
	same(t, warm, cold, "warm", n)
	if _, n := last(salt(0), 0); n != 0 {
		t.Errorf("without adapters %d tokens of another's prefix were taken", n)
	}
	got, n := last(salt(1), 1)
	if n == 0 {
		t.Error("the adapter's prefix is gone after another request")
	}
	same(t, got, cold, "again", n)
	// The partner: with one salt for both, the wrong prefix changes the answer.
	last(9, 0)
	if got, n := last(9, 1); n == 0 || slices.Equal(got, cold) {
		t.Errorf("%d tokens of a prefix without the adapter gave its logits", n)
	}
}

func TestSalt(t *testing.T) {
	a, b := engine.AdapterScale{ID: 0, Scale: 0.5}, engine.AdapterScale{ID: 1, Scale: 2}
	same := [][]engine.AdapterScale{{a, b}, {b, a}, {{ID: 3}, a, b}}
	for _, l := range same {
		if engine.Salt(l) != engine.Salt(same[0]) {
			t.Errorf("%v has another salt than %v", l, same[0])
		}
	}
	seen := map[uint64]bool{engine.Salt(same[0]): true}
	for _, l := range [][]engine.AdapterScale{nil, {a}, {b}, {{ID: 1, Scale: 0.5}}, {{ID: 0, Scale: -0.5}}} {
		s := engine.Salt(l)
		if seen[s] || (s == 0) != (l == nil) {
			t.Errorf("%v: salt %d", l, s)
		}
		seen[s] = true
	}
	if engine.Salt([]engine.AdapterScale{{ID: 2}}) != 0 {
		t.Error("an adapter of strength 0 has a salt")
	}
}

func TestAdaptersAreCounted(t *testing.T) {
	set := archtest.Golden(t)
	base := set.Path(t, "llama-dense")
	l := newLoRA(t, base, 3, 32, tensor.F32, everyMatrix)
	plain := open(t, "cpu", engine.Config{Path: base})
	e := open(t, "cpu", engine.Config{Path: base, Adapters: []engine.AdapterFile{{Path: l.path}}})
	info := e.Info().Adapters
	if len(info) != 1 || info[0].Name != "adapter" || info[0].Weights != len(l.pairs) || info[0].Bytes == 0 || info[0].Hash == "" {
		t.Errorf("adapters %+v", info)
	}
	more := e.Forecast().Weights - plain.Forecast().Weights
	if more < info[0].Bytes/2 || more > info[0].Bytes {
		t.Errorf("the forecast counts %d bytes of weights for an adapter of %d", more, info[0].Bytes)
	}
	if e.Forecast().Scratch <= plain.Forecast().Scratch {
		t.Error("the forecast counts no memory between the products")
	}
	need := e.Forecast().Total()
	_, err := engine.Open(context.Background(), engine.Config{Path: base, Backend: ref.New(), Adapters: files(l), Available: func() int64 { return need - 1 }})
	if !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("a machine one byte too small: error %v", err)
	}
}

func TestSetAdaptersRefuses(t *testing.T) {
	set := archtest.Golden(t)
	base := set.Path(t, "llama-dense")
	l := newLoRA(t, base, 3, 2, tensor.F32, everyMatrix)
	e := open(t, "ref", engine.Config{Path: base, Adapters: files(l), Slots: 2})
	inf := float32(math.Inf(1))
	for _, tt := range []struct {
		slot int
		list []engine.AdapterScale
		says string
	}{
		{2, nil, "slot 2 of 2"},
		{-1, nil, "slot -1"},
		{0, []engine.AdapterScale{{ID: 1, Scale: 1}}, "no adapter 1"},
		{0, []engine.AdapterScale{{ID: -1, Scale: 1}}, "no adapter -1"},
		{0, []engine.AdapterScale{{Scale: inf}}, "scale of adapter 0 is +Inf"},
		{0, []engine.AdapterScale{{Scale: float32(math.NaN())}}, "is NaN"},
		{0, []engine.AdapterScale{{Scale: 1}, {Scale: 2}}, "named twice"},
		{1, []engine.AdapterScale{{Scale: 2}}, ""},
	} {
		err := e.SetAdapters(tt.slot, tt.list)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("slot %d, %v: error %v, want %q", tt.slot, tt.list, err, tt.says)
		}
	}
}

func TestOpenRefusesAdapters(t *testing.T) {
	set := archtest.Golden(t)
	base := set.Path(t, "llama-dense")
	l := newLoRA(t, base, 3, 2, tensor.F32, everyMatrix)
	other := newLoRA(t, set.Path(t, "qwen3-dense"), 3, 2, tensor.F32, everyMatrix)
	for _, tt := range []struct {
		name     string
		adapters []engine.AdapterFile
		says     string
	}{
		{"not there", []engine.AdapterFile{{Path: "testdata/none.gguf"}}, `adapter "none"`},
		{"of another architecture", files(l, other), `adapter "b": key "general.architecture" is "qwen3", want "llama"`},
		{"a model", []engine.AdapterFile{{Path: base}}, `key "general.type"`},
		{"twice", []engine.AdapterFile{{Path: l.path}, {Path: l.path}}, `two adapters are named "adapter"`},
		{"too many", make([]engine.AdapterFile, engine.MaxAdapters+1), "at most 16"},
	} {
		_, err := engine.Open(context.Background(), engine.Config{Path: base, Backend: ref.New(), Adapters: tt.adapters})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.says)
		}
	}
}

// Decoding with adapters allocates nothing per token either.
func TestDecodeWithAdaptersAllocatesNothing(t *testing.T) {
	set := archtest.Golden(t)
	base := set.Path(t, "llama-dense")
	l := newLoRA(t, base, 3, 4, tensor.F16, everyMatrix)
	e := open(t, "cpu", engine.Config{Path: base, Adapters: files(l), Threads: 2, Context: 256, Slots: 1})
	slot, _, _ := e.Acquire([]int32{1, 2}, 1)
	if err := e.SetAdapters(slot, []engine.AdapterScale{{Scale: 1}}); err != nil {
		t.Fatal(err)
	}
	allocatesNothing(t, e, slot, ops.Want{Kind: ops.WantBest})
}
