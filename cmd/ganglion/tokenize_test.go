package main

import (
	"testing"

	"ganglion/gpu/gguf"
	"ganglion/gpu/tokenizer"
)

func TestTimeEncode(t *testing.T) {
	f, err := gguf.Open(tinyModel)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v, err := tokenizer.New(f)
	if err != nil {
		t.Fatal(err)
	}
	const text = "one two three"
	r := timeEncode(v, text, tokenizer.EncodeOptions{AddSpecial: true}, 3)
	if want := len(v.Encode(text, tokenizer.EncodeOptions{AddSpecial: true})); r.Tokens != want || r.Bytes != len(text) || !(r.Seconds > 0) {
		t.Errorf("measured %+v, want %d tokens of %d bytes in some time", r, want, len(text))
	}
}
