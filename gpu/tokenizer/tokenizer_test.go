package tokenizer

import (
	"bytes"
	"slices"
	"testing"
)

var (
	asText   = EncodeOptions{}
	asPrompt = EncodeOptions{AddSpecial: true, ParseSpecial: true}
)

// TestReference compares ids and rendering with the reference for every
// vocabulary and text.
func TestReference(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			tok := open(t, name)
			compareIDs(t, tok, goldens(t, "ids/"+name))
			if name == "bert-bge" {
				return // has no rendered texts
			}
			cases := goldens(t, name)
			compareIDs(t, tok, cases)
			for i, g := range cases {
				if got := tok.Decode(g.Plain, false); !bytes.Equal(got, g.Detok) {
					t.Errorf("text %d %q: decoded:\n got %q\nwant %q", i, g.Text, got, []byte(g.Detok))
				}
			}
		})
	}
}

func compareIDs(t *testing.T, tok *Tokenizer, cases []golden) {
	t.Helper()
	for i, g := range cases {
		if got := tok.Encode(g.Text, asText); !slices.Equal(got, g.Plain) {
			t.Errorf("text %d %q: plain:\n got %v\nwant %v", i, g.Text, got, g.Plain)
		}
		if got, want := tok.Encode(g.Text, asPrompt), oneBOS(tok, g.Special); !slices.Equal(got, want) {
			t.Errorf("text %d %q: special:\n got %v\nwant %v", i, g.Text, got, want)
		}
	}
}

// oneBOS states the rule that differs from the reference: where a model adds
// BOS and the prompt spells it out too, the reference has it twice.
func oneBOS(tok *Tokenizer, ids []TokenID) []TokenID {
	bos, ok := tok.BOS()
	if ok && tok.AddBOS() && len(ids) > 1 && ids[0] == bos && ids[1] == bos {
		return ids[1:]
	}
	return ids
}
