package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

// largeVocabulary makes up a vocabulary of the size of Gemma's: unused control
// tokens, byte tokens, letters, and words that each join two earlier tokens; for
// merges > 0 with these joints as merges.
func largeVocabulary(model string, tokens, merges int) fakeMetadata {
	r := rand.New(rand.NewPCG(1, 2))
	texts := []string{"<pad>", "<eos>", "<bos>", "<unk>"}
	kinds := []int64{3, 3, 3, 2}
	for i := range 6000 {
		texts, kinds = append(texts, fmt.Sprintf("<unused%d>", i)), append(kinds, 3)
	}
	for b := range 256 {
		texts, kinds = append(texts, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	first := len(texts)
	for c := rune('a'); c <= 'z'; c++ {
		texts, kinds = append(texts, string(c)), append(kinds, 1)
	}
	for c := range rune(2000) {
		texts, kinds = append(texts, string(0x4E00+c)), append(kinds, 1)
	}
	texts, kinds = append(texts, spaceMark), append(kinds, 1)
	var list []string
	for seen := map[string]bool{}; len(texts) < tokens; {
		left, right := texts[first+r.IntN(len(texts)-first)], texts[first+r.IntN(min(len(texts)-first, 4000))]
		if word := left + right; len(word) <= 16 && !seen[word] {
			seen[word] = true
			texts, kinds = append(texts, word), append(kinds, 1)
			list = append(list, left+" "+right)
		}
	}
	// Real lists reach a token in several ways; saying one twice costs the same.
	for i := 0; len(list) < merges; i++ {
		list = append(list, list[i])
	}
	scores := make([]float32, tokens)
	for i := range scores {
		scores[i] = -float32(i)
	}
	m := fakeMetadata{
		"tokenizer.ggml.model": model, "tokenizer.ggml.tokens": texts, "tokenizer.ggml.token_type": kinds,
		"tokenizer.ggml.scores": scores, "tokenizer.ggml.bos_token_id": uint64(2), "tokenizer.ggml.eos_token_id": uint64(1),
	}
	if merges > 0 {
		m["tokenizer.ggml.merges"] = list[:merges]
	}
	return m
}

// largeModels are Gemma 3 and Gemma 4. Half a million merges cost more than the
// vocabulary: each takes two look-ups and an insertion at random places of tables
// larger than the caches.
var largeModels = []struct {
	model  string
	merges int
	limit  time.Duration
}{{"llama", 0, 150 * time.Millisecond}, {"gemma4", 514_906, 300 * time.Millisecond}}

// TestNewIsFast builds tokenizers of the size of Gemma 3 and Gemma 4.
func TestNewIsFast(t *testing.T) {
	const memory = 48 << 20
	for _, l := range largeModels {
		t.Run(l.model, func(t *testing.T) {
			limit := l.limit
			if raceEnabled {
				limit *= 10
			}
			m := largeVocabulary(l.model, 262_144, l.merges)
			best := time.Hour
			var before, after runtime.MemStats
			for range 10 {
				runtime.GC()
				runtime.ReadMemStats(&before)
				var tok *Tokenizer
				var err error
				best = min(best, cpuTime(func() { tok, err = New(m) }))
				if err != nil {
					t.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(tok)
				if best <= limit {
					break
				}
			}
			t.Logf("New takes %v", best)
			if best > limit {
				t.Errorf("New takes %v, want at most %v", best, limit)
			}
			if used := after.HeapAlloc - before.HeapAlloc; used > memory {
				t.Errorf("a tokenizer takes %d bytes, want at most %d", used, memory)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, l := range largeModels {
		b.Run(l.model, func(b *testing.B) {
			m := largeVocabulary(l.model, 262_144, l.merges)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := New(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNewRefuses gives New descriptions that no tokenizer can be built from.
func TestNewRefuses(t *testing.T) {
	good := fakeMetadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
		"tokenizer.ggml.tokens": []string{"a", "b", "ab"}, "tokenizer.ggml.merges": []string{"a b"},
	}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	t5 := good.with("tokenizer.ggml.model", "t5")
	for _, c := range []struct {
		name string
		m    fakeMetadata
		want []string // parts of the error
	}{
		{"no model", good.with("tokenizer.ggml.model", nil), []string{"tokenizer.ggml.model"}},
		{"unknown model", good.with("tokenizer.ggml.model", "foo"), []string{"tokenizer.ggml.model", `"foo"`, "gpt2", "llama"}},
		{"unknown pre", good.with("tokenizer.ggml.pre", "bar"), []string{"tokenizer.ggml.pre", `"bar"`, "qwen2", "llama-bpe"}},
		{"no tokens", good.with("tokenizer.ggml.tokens", nil), []string{"tokenizer.ggml.tokens"}},
		{"no merges", good.with("tokenizer.ggml.merges", nil), []string{"tokenizer.ggml.merges"}},
		{"few kinds", good.with("tokenizer.ggml.token_type", []int64{1}), []string{"tokenizer.ggml.token_type", "1", "3"}},
		{"few scores", good.with("tokenizer.ggml.scores", []float32{1}), []string{"tokenizer.ggml.scores", "1", "3"}},
		{"short map", t5.with("tokenizer.ggml.precompiled_charsmap", []int64{1, 2}), []string{"precompiled_charsmap"}},
		{"long trie", t5.with("tokenizer.ggml.precompiled_charsmap", []int64{255, 255, 255, 255, 0, 0}), []string{"precompiled_charsmap"}},
		{"open string", t5.with("tokenizer.ggml.precompiled_charsmap", []int64{4, 0, 0, 0, 0, 0, 0, 0, 'x'}), []string{"precompiled_charsmap"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(c.m)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
		})
	}
}

// TestNewToleratesOddities builds tokenizers from files with bad details.
func TestNewToleratesOddities(t *testing.T) {
	base := fakeMetadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
		"tokenizer.ggml.tokens": []string{"a", "", "a", "ab", "b"}, "tokenizer.ggml.merges": []string{"a b", "a b", "", " ", "ab", "a ", " a", "x y", "\xff \xfe"},
		"tokenizer.ggml.token_type": []int64{1, 99, -1, 1, 1}, "tokenizer.ggml.bos_token_id": uint64(1 << 40), "tokenizer.ggml.eos_token_id": uint64(5),
		"tokenizer.ggml.suppress_tokens": []int64{-1, 3, 5, 1 << 40},
	}
	for model, family := range map[string]string{"gpt2": "bpe", "llama": "spm", "bert": "wpm", "t5": "unigram", "gemma4": "bpe"} {
		t.Run(model, func(t *testing.T) {
			tok, err := New(base.with("tokenizer.ggml.model", model))
			if err != nil {
				t.Fatal(err)
			}
			if tok.Family() != family {
				t.Errorf("family %s, want %s", tok.Family(), family)
			}
			for _, s := range []string{"", "ab", "a b\n", "\xff\xfea", strings.Repeat("ab", 600)} {
				for _, id := range tok.Encode(s, asPrompt) {
					if id < 0 || int(id) >= tok.VocabSize() {
						t.Errorf("%q: token %d", s, id)
					}
				}
			}
			if got := fmt.Sprint(tok.Suppressed()); got != "[3]" {
				t.Errorf("suppressed %s, want [3]", got)
			}
			for _, id := range []TokenID{-1, 5, 1 << 30} {
				if tok.Text(id) != "" || tok.Kind(id) != Undefined || tok.IsEOG(id) || len(tok.Decode([]TokenID{id}, true)) > 0 {
					t.Errorf("token %d is not nothing", id)
				}
			}
		})
	}
}
