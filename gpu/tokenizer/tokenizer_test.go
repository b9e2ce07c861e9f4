package tokenizer

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// TestReference compares ids and rendering with the reference for every
// vocabulary and text.
func TestReference(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			tok := open(t, name)
			for i, g := range goldens(t, name) {
				label := fmt.Sprintf("text %d %q", i, g.Text)
				if got := tok.Encode(g.Text, EncodeOptions{}); !slices.Equal(got, g.Plain) {
					t.Errorf("%s: plain:\n got %v\nwant %v", label, got, g.Plain)
				}
				want := oneBOS(tok, g.Special)
				if got := tok.Encode(g.Text, EncodeOptions{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, want) {
					t.Errorf("%s: special:\n got %v\nwant %v", label, got, want)
				}
				if got := tok.Decode(g.Plain, false); !bytes.Equal(got, g.Detok) {
					t.Errorf("%s: decoded:\n got %q\nwant %q", label, got, []byte(g.Detok))
				}
			}
		})
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
