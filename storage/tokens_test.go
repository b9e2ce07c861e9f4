package storage

import (
	"math"
	"reflect"
	"testing"

	"ganglion/appliance"
)

func TestTokensRoundTrip(t *testing.T) {
	tests := []struct {
		name   string
		tokens []appliance.Token
		text   string
	}{
		{"none", nil, ""},
		{"one", []appliance.Token{{ID: 5, Text: "ab", Logprob: -0.5}}, "ab"},
		{"largest id", []appliance.Token{{ID: math.MaxInt32}, {ID: -1}}, ""},
		{"empty text", []appliance.Token{{ID: 5, Offset: 2}}, "ab"},
		{"text beyond the answer", []appliance.Token{{ID: 5, Text: "stop", Offset: 1}, {ID: 6, Text: "x", Offset: 90}}, "a"},
		{"exact numbers", []appliance.Token{{Logprob: -math.SmallestNonzeroFloat64}, {Logprob: -math.MaxFloat64}, {Logprob: math.Copysign(0, -1)}}, ""},
		{"record", ended("a").Tokens, ended("a").Text},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseTokens(appendTokens(tt.tokens, tt.text), tt.text)
			if err != nil || !reflect.DeepEqual(got, tt.tokens) {
				t.Errorf("got %v, %v, want %v", got, err, tt.tokens)
			}
		})
	}
}

func TestTokensAreCompact(t *testing.T) {
	text := "a word and another "
	tokens := make([]appliance.Token, 1000)
	for i := range tokens {
		tokens[i] = appliance.Token{ID: 200000, Text: "word ", Offset: 2, Logprob: -1}
	}
	if n := len(appendTokens(tokens, text)); n > 15*len(tokens) {
		t.Errorf("%d bytes for %d tokens", n, len(tokens))
	}
}

// Every cut and every changed byte is an error or other tokens, never a panic or a
// large allocation.
func TestDamagedTokens(t *testing.T) {
	r := ended("a")
	good := appendTokens(r.Tokens, r.Text)
	for n := 1; n < len(good); n++ {
		if _, err := parseTokens(good[:n], r.Text); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(good))
		}
	}
	for i := range good {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := append([]byte{}, good...)
			b[i] = v
			_, _ = parseTokens(b, r.Text)
		}
	}
	if _, err := parseTokens([]byte{tokensVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, ""); err == nil {
		t.Error("a count beyond the blob is accepted")
	}
	if _, err := parseTokens([]byte{9, 0}, ""); err == nil {
		t.Error("an unknown version is accepted")
	}
}

func FuzzTokens(f *testing.F) {
	r := ended("a")
	f.Add(appendTokens(r.Tokens, r.Text), r.Text)
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		tokens, err := parseTokens(b, text)
		if err != nil {
			return
		}
		again, err := parseTokens(appendTokens(tokens, text), text)
		if err != nil || len(again) != len(tokens) {
			t.Errorf("%d tokens become %d, %v", len(tokens), len(again), err)
		}
	})
}
