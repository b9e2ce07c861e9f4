package tokenizer

import (
	"strings"
	"testing"
)

// mixedText returns about n bytes of prose, code, numbers and several scripts.
func mixedText(t testing.TB, n int) string {
	var b strings.Builder
	for b.Len() < n {
		for _, g := range goldens(t, "gpt-2") {
			b.WriteString(g.Text)
			b.WriteByte('\n')
		}
		for range 12 {
			b.WriteString("The quick brown fox jumps over the lazy dog; it has done so for years, and nobody minds.\n")
			b.WriteString("\tfor i := range words { sum += len(words[i]) } // 1234567 bytes\n")
		}
	}
	return b.String()[:n]
}

func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"llama-spm", "phi-3", "gpt-2", "llama-bpe", "qwen35", "deepseek-llm", "command-r", "gemma-4", "nomic-bert-moe", "bert-bge"} {
		b.Run(name, func(b *testing.B) {
			tok := open(b, name)
			text := mixedText(b, 1<<18)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tok.Encode(text, asPrompt)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"llama-spm", "gpt-2"} {
		b.Run(name, func(b *testing.B) {
			tok := open(b, name)
			ids := tok.Encode(mixedText(b, 1<<18), asText)
			d := tok.NewDecoder()
			b.ReportAllocs()
			for b.Loop() {
				for _, id := range ids {
					d.Push(id)
				}
				d.Flush()
			}
			b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
