package tokenizer

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzEncode feeds any text to tokenizers of all families: nothing panics, ids
// are tokens, special tokens stay out where they must, text comes back where
// that is promised, and streaming equals decoding at once.
func FuzzEncode(f *testing.F) {
	toks := map[string]*Tokenizer{}
	for _, name := range []string{"llama-spm", "phi-3", "gpt-2", "llama-bpe", "qwen35", "deepseek-llm", "gemma-4", "mpt", "nomic-bert-moe", "bert-bge"} {
		toks[name] = open(f, name)
	}
	for _, s := range fragments {
		f.Add(s + "x" + s)
	}
	for _, g := range goldens(f, "gpt-2") {
		f.Add(g.Text)
	}
	f.Add("\xff\xfe<s>\xe2\x96")
	f.Add(strings.Repeat("ab", 600))
	f.Fuzz(func(t *testing.T, s string) {
		for name, tok := range toks {
			ids := tok.Encode(s, asText)
			checkIDs(t, tok, ids, false)
			checkIDs(t, tok, tok.Encode(s, asPrompt), true)
			checkStream(t, tok, ids)
			prefix, ok := lossless[name]
			if !ok || s == "" || !utf8.ValidString(s) || tok.pieces == spacedPieces && strings.Contains(s, spaceMark) {
				continue
			}
			if got := string(tok.Decode(ids, false)); got != prefix+s {
				t.Errorf("%s: %q comes back as %q", name, s, got)
			}
		}
	})
}

func checkIDs(t *testing.T, tok *Tokenizer, ids []TokenID, special bool) {
	for _, id := range ids {
		if id < 0 || int(id) >= tok.VocabSize() {
			t.Fatalf("token %d of %d", id, tok.VocabSize())
		}
		if !special && tok.Kind(id) == Control && id != tok.special.unknown {
			t.Fatalf("control token %d %q from text", id, tok.Text(id))
		}
	}
}

func checkStream(t *testing.T, tok *Tokenizer, ids []TokenID) {
	d := tok.NewDecoder()
	var streamed []byte
	for _, id := range ids {
		part := d.Push(id)
		if !utf8.Valid(part) {
			t.Fatalf("Push returns %q", part)
		}
		streamed = append(streamed, part...)
	}
	streamed = append(streamed, d.Flush()...)
	whole, rest := appendWellFormed(nil, tok.Decode(ids, false))
	if len(rest) > 0 {
		whole = append(whole, "\uFFFD"...)
	}
	if !bytes.Equal(streamed, whole) {
		t.Fatalf("streamed %q, whole %q", streamed, whole)
	}
}

// FuzzSplit checks that the pieces of every pre-tokenizer make up the text.
func FuzzSplit(f *testing.F) {
	for _, s := range fragments {
		f.Add(s + s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, p := range preTokenizers {
			pieces := splitText(p.stages, s)
			if strings.Join(pieces, "") != s || slices.Contains(pieces, "") {
				t.Errorf("%s: %q: pieces %q", name, s, pieces)
			}
		}
	})
}
