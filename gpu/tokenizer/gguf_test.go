package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ganglion/gpu/gguf"
)

var _ Metadata = (*gguf.File)(nil)

// TestModelFile builds tokenizers from files by the engine's own reader; they
// outlive the file.
func TestModelFile(t *testing.T) {
	for _, name := range []string{"llama-spm", "llama-bpe", "gemma-4", "nomic-bert-moe", "bert-bge"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name+".gguf")
			if err := os.WriteFile(path, readGzip(t, filepath.Join("testdata", name+".gguf.gz")), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := gguf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			tok, err := New(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			want := open(t, name)
			for _, s := range fragments {
				if a, b := tok.Encode(s, asPrompt), want.Encode(s, asPrompt); !slices.Equal(a, b) {
					t.Errorf("%q: got %v, want %v", s, a, b)
				}
			}
		})
	}
}
