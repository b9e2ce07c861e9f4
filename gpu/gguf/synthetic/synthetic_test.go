package synthetic_test

import (
	"path/filepath"
	"testing"

	"ganglion/gpu/gguf"
	"ganglion/gpu/gguf/synthetic"
	"ganglion/gpu/tensor"
)

func TestWrite(t *testing.T) {
	for _, typ := range []tensor.Type{tensor.Q4_0, tensor.Q4_K, tensor.Q8_0} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		l := synthetic.Llama{Layers: 2, Embed: 256, FeedForward: 512, Heads: 4, KVHeads: 2, Vocab: 300, Context: 64, Type: typ}
		if err := l.Write(path, 1); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := len(f.Tensors()); got != 3+9*2 {
			t.Errorf("%v: %d tensors, want %d", typ, got, 3+9*2)
		}
	}
}

func TestWriteRefusesAnotherType(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Llama1B(tensor.IQ1_S).Write(path, 1); err == nil {
		t.Error("a type without a writer gave no error")
	}
	l := synthetic.Llama{Layers: 1, Embed: 96, FeedForward: 96, Heads: 1, KVHeads: 1, Vocab: 300, Context: 64, Type: tensor.Q4_K}
	if err := l.Write(path, 1); err == nil {
		t.Error("rows that are not whole blocks gave no error")
	}
	if m, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(m) != 0 {
		t.Errorf("a failed write left %v", m)
	}
}
