package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/engine"
	"ganglion/gpu/model"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/tokenizer"
)

// What is allocated for sequences is what the forecast says, for every architecture,
// type of cache and backend.
func TestKVForecastOfEveryArchitecture(t *testing.T) {
	set := archtest.Golden(t)
	known := model.Architectures()
	seen := 0
	for _, entry := range set.Entries {
		if !slices.Contains(known, entry.Arch) {
			continue
		}
		seen++
		for i, name := range []string{"cpu", "ref"} {
			kv := ops.KVType((seen + i) % len(ops.KVTypes()))
			e := open(t, name, engine.Config{Path: set.Path(t, entry.Name), Context: 96, Slots: 3, MaxRows: 16, KV: kv, CacheTokens: 100})
			if got, want := e.Info().KVBytes, e.Forecast().KV; got != want || got == 0 {
				t.Errorf("%s on %s, %s: %d bytes for sequences, the forecast says %d", entry.Name, name, kv, got, want)
			}
			if got, want := e.Info().KV, kv.String(); got != want {
				t.Errorf("cache of type %q, want %q", got, want)
			}
			e.Close()
		}
	}
	if seen < 10 {
		t.Errorf("%d architectures were looked at", seen)
	}
}

// More rows of logits are wanted after fewer: the scratch stays within the forecast.
func TestScratchStaysWithinTheForecast(t *testing.T) {
	e := open(t, "cpu", engine.Config{Path: archtest.Golden(t).Path(t, "llama-dense"), Context: 256, Slots: 1, MaxRows: 128})
	one := open(t, "cpu", engine.Config{Path: archtest.Golden(t).Path(t, "llama-dense"), Context: 256, Slots: 1, MaxRows: 128})
	grown := func(e *engine.Engine, rows ...int) int64 {
		for _, n := range rows {
			allLogits(t, e, make([]int32, n), n)
		}
		return e.ScratchBytes()
	}
	all, last := grown(e, 1, 8, 64), grown(one, 64)
	if outs := int64(64 * 320 * 4); all-last > outs/2 {
		t.Errorf("programs of three sizes hold %d bytes more than the largest alone", all-last)
	}
}

// badHeads puts heads in error for one slot from position 2 on.
func badHeads(slot int32) *hooked {
	return &hooked{Backend: ref.New(), run: func(p ops.Program, b *ops.Batch, r *ops.Result) error {
		err := p.Run(b, r)
		for i := range r.Heads {
			if row := b.Outs[i]; b.Slot[row] == slot && b.Pos[row] >= 2 {
				r.Heads[i] = ops.Head{Err: errors.New("not finite")}
			}
		}
		return err
	}}
}

// A row whose logits are not finite ends its own sequence and no other.
func TestBadHeadSpoilsItsSequenceAlone(t *testing.T) {
	b := badHeads(1)
	e, err := engine.Open(context.Background(), engine.Config{Path: archtest.Golden(t).Path(t, "llama-dense"), Backend: b, Context: 64, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	good, _, _ := e.Acquire([]int32{1, 2}, 0)
	bad, _, _ := e.Acquire([]int32{3, 4}, 0)
	heads, err := e.Run(append(wantAll(good, []int32{5, 6, 7}), wantAll(bad, []int32{5, 6, 7})...))
	if err != nil || len(heads) != 6 {
		t.Fatalf("%d heads, error %v", len(heads), err)
	}
	for i, h := range heads {
		if (h.Err != nil) != (i == 5) {
			t.Errorf("head %d: error %v", i, h.Err)
		}
	}
	if _, err := e.Run(wantAll(bad, []int32{8})); err == nil || !strings.Contains(err.Error(), "not finite") {
		t.Errorf("a token after a bad row: error %v", err)
	}
	if _, err := e.Run(wantAll(good, []int32{8})); err != nil {
		t.Errorf("the other sequence: %v", err)
	}
}

// longText is the token ids of the golden text.
func longText(t testing.TB, e *engine.Engine) []int32 {
	g := golden(t)
	return e.Tokenizer().Encode(strings.Repeat(g.Long.TextRepeat, g.Long.Repeats), tokenizer.EncodeOptions{AddSpecial: true})
}

// A cache in q8_0 may move the log-probability of a text's tokens by this much on
// average, against one in float32 with all else exact.
const maxQ8LogProb = 0.01

func TestQ8CacheKeepsLogProbs(t *testing.T) {
	probs := func(kv ops.KVType) []float64 {
		e := open(t, "cpu", engine.Config{Path: realModel(t), KV: kv, Numerics: ops.Exact, Threads: 2, Context: 512, Slots: 1})
		tokens := longText(t, e)[:150]
		var out []float64
		eachRow(t, e, tokens, 64, func(pos int, row []float32, lse float64) {
			if pos+1 < len(tokens) {
				out = append(out, float64(row[tokens[pos+1]])-lse)
			}
		})
		return out
	}
	exact, got := probs(ops.KVF32), probs(ops.KVQ8)
	var sum float64
	for i := range exact {
		sum += math.Abs(exact[i] - got[i])
	}
	mean := sum / float64(len(exact))
	t.Logf("mean |Δ log p| of a q8_0 cache over %d tokens: %.4f", len(exact), mean)
	if !(mean <= maxQ8LogProb) || mean == 0 {
		t.Errorf("mean |Δ log p| is %.4f, want above 0 and at most %.4f", mean, maxQ8LogProb)
	}
}

// BenchmarkSharedPrefix reads prompts of 1,004 tokens of which 1,000 are the same, and
// reports how long one takes after another as a part of how long a cold one takes.
func BenchmarkSharedPrefix(b *testing.B) {
	e := open(b, "cpu", engine.Config{Path: realModel(b), Threads: 2, Context: 2048, Slots: 4})
	text := longText(b, e)[:1000]
	read := func(salt uint64, own int32) time.Duration {
		prompt := append(slices.Clone(text), own, own+1, own+2, own+3)
		from := time.Now()
		slot, cached, ok := e.Acquire(prompt, salt)
		if !ok {
			b.Fatal("no slot")
		}
		defer e.Release(slot)
		for part := range slices.Chunk(prompt[cached:], 512) {
			rows := make([]engine.Row, len(part))
			for i, id := range part {
				rows[i] = engine.Row{Slot: slot, Token: id}
			}
			rows[len(rows)-1].Want = true
			if _, err := e.Run(rows); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(from)
	}
	read(1, 100) // compiles the programs and touches the memory
	read(1, 200)
	var cold, warm time.Duration
	salt := uint64(1)
	for b.Loop() {
		salt++
		cold += read(salt, 100)
		warm += read(salt, 200+int32(salt%1000))
	}
	b.ReportMetric(float64(warm)/float64(cold), "warm/cold")
	b.ReportMetric(float64(cold.Milliseconds())/float64(b.N), "cold-ms")
	b.ReportMetric(float64(warm.Milliseconds())/float64(b.N), "warm-ms")
}
