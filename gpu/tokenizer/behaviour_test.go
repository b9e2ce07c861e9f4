package tokenizer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// F45: BOS appears once.
func TestBOSAppearsOnce(t *testing.T) {
	base := vocabulary(t, "llama-spm")
	for _, c := range []struct {
		addBOS, parse bool
		text          string
		want          int // BOS tokens in front
	}{
		{true, true, "<s>hi", 1}, {true, true, "hi", 1}, {true, true, "", 1}, {true, true, "<s>", 1},
		{true, true, "<s><s>hi", 2}, // the second one is meant
		{true, false, "<s>hi", 1},   // text, not BOS
		{false, true, "<s>hi", 1}, {false, true, "hi", 0},
	} {
		t.Run(fmt.Sprintf("add=%v/parse=%v/%s", c.addBOS, c.parse, c.text), func(t *testing.T) {
			tok, err := New(base.with("tokenizer.ggml.add_bos_token", c.addBOS))
			if err != nil {
				t.Fatal(err)
			}
			bos, _ := tok.BOS()
			ids := tok.Encode(c.text, EncodeOptions{AddSpecial: true, ParseSpecial: c.parse})
			got := 0
			for got < len(ids) && ids[got] == bos {
				got++
			}
			if got != c.want {
				t.Errorf("%d BOS tokens, want %d: %v", got, c.want, ids)
			}
			if tok.AddBOS() != c.addBOS {
				t.Errorf("AddBOS %v, want %v", tok.AddBOS(), c.addBOS)
			}
		})
	}
}

// lossless names the vocabularies that have every byte (refact, starcoder and
// falcon do not) and whose
// decoded text is the text, and what they put in front of it.
var lossless = map[string]string{
	"llama-spm": " ", "phi-3": " ", "baichuan": " ", "gemma-4": "", "gpt-2": "", "llama-bpe": "", "qwen2": "", "qwen35": "",
	"deepseek-llm": "", "deepseek-coder": "", "gpt-neox": "", "mpt": "", "command-r": "", "aquila": "",
}

// F46, F47: text comes back whole, by bytes where the vocabulary lacks it.
func TestRoundTrip(t *testing.T) {
	texts := []string{"this is 🦙.cpp", "\u0000", "𪚥 rare", "  two  ", "\r\n\t\v"}
	for c := range rune(256) {
		texts = append(texts, string(c))
	}
	r := newRand(t)
	for range 2_000 {
		texts = append(texts, randomText(r, 12))
	}
	for name, prefix := range lossless {
		t.Run(name, func(t *testing.T) {
			tok := open(t, name)
			for _, s := range texts {
				// The space mark itself cannot be told from a space.
				if tok.pieces == spacedPieces {
					s = strings.ReplaceAll(s, spaceMark, "")
				}
				want := prefix + s
				if s == "" {
					want = ""
				}
				ids := tok.Encode(s, asText)
				for _, id := range ids {
					if k := tok.Kind(id); k == Unknown || k == Control {
						t.Errorf("%q: token %d is %v", s, id, k)
					}
				}
				if got := string(tok.Decode(ids, false)); got != want {
					t.Errorf("%q: got %q, want %q", s, got, want)
				}
			}
		})
	}
}

// Text that is not UTF-8 comes back whole too where ids stand for bytes.
func TestIllFormedTextRoundTrip(t *testing.T) {
	for _, name := range []string{"llama-spm", "gemma-4", "gpt-2", "qwen2", "llama-bpe"} {
		tok := open(t, name)
		for _, s := range []string{"a\xff", "\xe2\x96", "\xe2\x96\xff x", "\x80\x80\x80", "\xed\xa0\x80z", "'s\xc0"} {
			if got := string(tok.Decode(tok.Encode(s, asText), false)); strings.TrimPrefix(got, lossless[name]) != s {
				t.Errorf("%s: %q: got %q", name, s, got)
			}
		}
	}
}

// F49: without ParseSpecial no text yields a control token.
func TestSpecialParsingCanBeOff(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			tok := open(t, name)
			var all strings.Builder
			controls := 0
			for id := range TokenID(tok.VocabSize()) {
				if tok.Kind(id) != Control {
					continue
				}
				controls++
				all.WriteString("x" + tok.Text(id) + " ")
			}
			for _, id := range tok.Encode(all.String(), asText) {
				if tok.Kind(id) == Control {
					t.Errorf("token %d %q from text", id, tok.Text(id))
				}
			}
			found := 0
			for _, id := range tok.Encode(all.String(), EncodeOptions{ParseSpecial: true}) {
				if tok.Kind(id) == Control {
					found++
				}
			}
			if found < controls {
				t.Errorf("parsed %d control tokens, want %d", found, controls)
			}
		})
	}
	qwen := open(t, "qwen2")
	const text = "<|im_start|>x<|im_end|>"
	if got := qwen.Encode(text, EncodeOptions{ParseSpecial: true}); len(got) != 3 || qwen.Kind(got[0]) != Control || qwen.Kind(got[2]) != Control {
		t.Errorf("on: %v", got)
	}
	if got := string(qwen.Decode(qwen.Encode(text, asText), false)); got != text {
		t.Errorf("off: %q", got)
	}
}

// tiny is a byte-level vocabulary with the given tokens behind its letters.
func tiny(t testing.TB, tokens []string, kinds []int64) *Tokenizer {
	t.Helper()
	var texts []string
	var types []int64
	for b := range 256 {
		texts, types = append(texts, string(byteToRune[b])), append(types, 1)
	}
	tok, err := New(fakeMetadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.merges": []string{},
		"tokenizer.ggml.tokens": append(texts, tokens...), "tokenizer.ggml.token_type": append(types, kinds...),
	})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// F50: control tokens are not rendered, user-defined tokens are.
func TestRenderingByKind(t *testing.T) {
	tok := tiny(t, []string{"ok", "[THINK]", "<|im_end|>", "<unk>", "free"}, []int64{1, 4, 3, 2, 5})
	ids := []TokenID{256, 257, 258, 259, 260}
	if got, want := string(tok.Decode(ids, false)), "ok[THINK]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := string(tok.Decode(ids, true)), "ok[THINK]<|im_end|><unk>"; got != want {
		t.Errorf("special: got %q, want %q", got, want)
	}
	for i, want := range []Kind{Normal, UserDefined, Control, Unknown, Unused} {
		if got := tok.Kind(ids[i]); got != want {
			t.Errorf("token %d: kind %v, want %v", ids[i], got, want)
		}
	}
}

// F51: trailing space is kept.
func TestTrailingSpaceIsKept(t *testing.T) {
	for _, name := range []string{"llama-spm", "gpt-2", "qwen2", "gemma-4"} {
		tok := open(t, name)
		if a, b := tok.Encode("meaning of life is", asPrompt), tok.Encode("meaning of life is ", asPrompt); len(b) != len(a)+1 {
			t.Errorf("%s: %d tokens without, %d with a trailing space", name, len(a), len(b))
		}
	}
}

// The tokens that end a generation are a set, found by text.
func TestEndsOfGeneration(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens []string
		want   []string
	}{
		{"chatml", []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, []string{"<|endoftext|>", "<|im_end|>"}},
		{"llama3", []string{"<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"}, []string{"<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"}},
		{"phi", []string{"<|end|>", "<|endoftext|>"}, []string{"<|end|>", "<|endoftext|>"}},
		{"harmony", []string{"<|start|>", "<|end|>", "<|return|>", "<|call|>"}, []string{"<|return|>", "<|call|>"}},
		{"gemma4", []string{"</s>", "<turn|>", "<|tool_response>", "<eos>"}, []string{"<turn|>", "<|tool_response>", "<eos>"}},
		{"fill", []string{"<|fim_prefix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}, []string{"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}},
		{"paddle", []string{"</s>"}, []string{"</s>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			kinds := slices.Repeat([]int64{3}, len(c.tokens))
			tok := tiny(t, c.tokens, kinds)
			var got []string
			for _, id := range tok.EOG() {
				if id >= 256 { // the default EOS of the kind is a letter here
					got = append(got, tok.Text(id))
				}
				if !tok.IsEOG(id) {
					t.Errorf("%d is in the set and not in it", id)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Harmony's structure is shown in answers, yet plain prompt text cannot make it.
func TestHarmonyTokensAreShownNotParsed(t *testing.T) {
	tok := tiny(t, []string{"<|channel|>", "<|end|>", "<|return|>", "<|call|>"}, []int64{3, 3, 3, 3})
	if got, want := string(tok.Decode([]TokenID{256, 257, 258}, false)), "<|channel|><|end|>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, id := range tok.Encode("<|channel|><|end|>", asText) {
		if id >= 256 {
			t.Errorf("token %q from text", tok.Text(id))
		}
	}
	if got := tok.Encode("<|channel|><|end|>", EncodeOptions{ParseSpecial: true}); !slices.Equal(got, []TokenID{256, 257}) {
		t.Errorf("parsed: %v", got)
	}
}

// The vocabularies that do not name their pre-tokenizer say so.
func TestQualityWarning(t *testing.T) {
	for name, want := range map[string]bool{"gpt-neox": true, "aquila": true, "gpt-2": false, "llama-spm": false, "gemma-4": false} {
		if got := open(t, name).QualityWarning() != ""; got != want {
			t.Errorf("%s: warning %v, want %v", name, got, want)
		}
	}
}

// One tokenizer serves many goroutines.
func TestConcurrentUse(t *testing.T) {
	for _, name := range []string{"llama-spm", "llama-bpe", "gemma-4", "nomic-bert-moe", "bert-bge"} {
		tok := open(t, name)
		text := strings.Repeat("Hello 🦙 <s> world 123\n", 40)
		want := tok.Encode(text, asPrompt)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					if got := tok.Encode(text, asPrompt); !slices.Equal(got, want) {
						t.Errorf("%s: got %v, want %v", name, got, want)
						return
					}
					tok.Decode(want, true)
				}
			})
		}
		wg.Wait()
	}
}

// F06, F07: the decoder never splits a character and follows the Unicode rule.
func TestDecoder(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string
		want   []string // what each Push and then Flush return
	}{
		{"split llama", []string{"\xF0\x9F", "\xA6\x99", " ok"}, []string{"", "🦙", " ok", ""}},
		{"cut short", []string{"a", "\xF0\x9F"}, []string{"a", "", "\uFFFD"}},
		{"surrogate", []string{"\xED\xA0\x80"}, []string{"\uFFFD\uFFFD\uFFFD", ""}},
		{"overlong", []string{"\xF0\x80\x80A"}, []string{"\uFFFD\uFFFD\uFFFDA", ""}},
		{"truncated", []string{"\xE2\x80", "A"}, []string{"", "\uFFFDA", ""}},
		{"lone", []string{"\x80"}, []string{"\uFFFD", ""}},
		{"too high", []string{"\xF4\x90\x80\x80", "\xF5"}, []string{"\uFFFD\uFFFD\uFFFD\uFFFD", "\uFFFD", ""}},
		{"two lead bytes", []string{"\xE2", "\xE2\x82", "\xAC"}, []string{"", "\uFFFD", "€", ""}},
		{"byte by byte", []string{"\xE2", "\x82", "\xAC", "x"}, []string{"", "", "€", "x", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tokens []string
			var ids []TokenID
			for i, p := range c.pieces {
				tokens = append(tokens, string(appendAlphabet(nil, p)))
				ids = append(ids, TokenID(256+i))
			}
			tok := tiny(t, tokens, slices.Repeat([]int64{1}, len(tokens)))
			d := tok.NewDecoder()
			var got []string
			for _, id := range ids {
				got = append(got, string(d.Push(id)))
			}
			got = append(got, string(d.Flush()))
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if rest := d.Flush(); len(rest) > 0 {
				t.Errorf("second Flush returns %q", rest)
			}
		})
	}
}

// Streamed and whole text are equal for all sequences of bytes.
func TestDecoderAgreesWithDecode(t *testing.T) {
	tok := tiny(t, nil, nil)
	r := newRand(t)
	d := tok.NewDecoder()
	interesting := []byte{'a', 0x80, 0xBF, 0xC0, 0xC2, 0xE0, 0xA0, 0xED, 0x9F, 0xE2, 0xF0, 0x90, 0xF4, 0x8F, 0xF5, 0xFF}
	for range 20_000 {
		var ids []TokenID
		for range r.IntN(12) {
			b := interesting[r.IntN(len(interesting))]
			ids = append(ids, tok.Encode(string([]byte{b}), asText)...)
		}
		var streamed []byte
		for _, id := range ids {
			part := d.Push(id)
			if !utf8.Valid(part) {
				t.Fatalf("%v: Push returns %q", ids, part)
			}
			streamed = append(streamed, part...)
		}
		streamed = append(streamed, d.Flush()...)
		whole, rest := appendWellFormed(nil, tok.Decode(ids, false))
		if len(rest) > 0 {
			whole = append(whole, "\uFFFD"...)
		}
		if !bytes.Equal(streamed, whole) {
			t.Fatalf("%v: streamed %q, whole %q", ids, streamed, whole)
		}
		if a, b := streamed, []byte(strings.ToValidUTF8(string(tok.Decode(ids, false)), "")); !bytes.Equal(bytes.ReplaceAll(a, []byte("\uFFFD"), nil), b) {
			t.Fatalf("%v: well-formed part %q, want %q", ids, a, b)
		}
	}
}

// The decoder allocates nothing once it is warm.
func TestDecoderDoesNotAllocate(t *testing.T) {
	tok := open(t, "gpt-2")
	ids := tok.Encode("Hello, 🦙 world! naïve café", asText)
	d := tok.NewDecoder()
	if n := testing.AllocsPerRun(100, func() {
		for _, id := range ids {
			d.Push(id)
		}
		d.Flush()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
