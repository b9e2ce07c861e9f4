package gguf

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/tensor"
)

// raw builds a file field by field, right or wrong.
type raw []byte

func (b raw) u8(v byte) raw    { return append(b, v) }
func (b raw) u32(v uint32) raw { return binary.LittleEndian.AppendUint32(b, v) }
func (b raw) u64(v uint64) raw { return binary.LittleEndian.AppendUint64(b, v) }
func (b raw) str(s string) raw { return append(b.u64(uint64(len(s))), s...) }
func (b raw) zeros(n int) raw  { return append(b, make([]byte, n)...) }

// top begins a file: magic, version 3, counts. It takes 24 bytes.
func top(tensors, keys uint64) raw { return raw("GGUF").u32(3).u64(tensors).u64(keys) }

// oneKey begins a file with the single key "k" of the given type: its value begins at
// byte 24+9+4 = 37.
func oneKey(t ValueType) raw { return top(0, 1).str("k").u32(uint32(t)) }

// tiny is a valid model with a bit of everything.
func tiny() gguftest.Model {
	return gguftest.Model{
		KV: []gguftest.KV{
			{Key: "general.architecture", Value: "llama"},
			{Key: "general.name", Value: "tiny"},
			{Key: "llama.block_count", Value: uint32(1)},
			{Key: "tokenizer.ggml.tokens", Value: []string{"<s>", "", "ä"}},
		},
		Tensors: []gguftest.Tensor{
			{Name: "a", Type: tensor.F32, Dims: []int{3, 2}, Data: gguftest.F32(1, 2, 3, 4, 5, 6)},
			{Name: "b", Type: tensor.F32, Dims: []int{2}, Data: gguftest.F32(7, 8)},
			{Name: "c", Type: tensor.Q8_0, Dims: []int{32, 2, 3}},
			{Name: "d", Type: tensor.F32, Dims: []int{1}, Data: gguftest.F32(9)},
		},
	}
}

// encode returns a model's bytes.
func encode(t testing.TB, m gguftest.Model) []byte {
	t.Helper()
	b, err := gguftest.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// save writes bytes to a new file and returns its path.
func save(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a file that must load and closes it when the test ends.
func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// data returns the bytes of a tensor that must be there.
func data(t testing.TB, f *File, name string) []byte {
	t.Helper()
	x, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %q", name)
	}
	b, err := f.Data(x)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// refused checks that an error is there and has all the texts.
func refused(t testing.TB, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", texts)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("got error %q, want one with %q", err, s)
		}
	}
}

// grow makes a file longer without using disk space.
func grow(t testing.TB, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}
