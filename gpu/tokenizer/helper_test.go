package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeMetadata is the metadata of a model file as plain Go values: string,
// uint64, bool, []string, []float32, []int64.
type fakeMetadata map[string]any

func get[T any](m fakeMetadata, key string) (T, bool) {
	v, ok := m[key].(T)
	return v, ok
}

func (m fakeMetadata) String(key string) (string, bool)    { return get[string](m, key) }
func (m fakeMetadata) Uint(key string) (uint64, bool)      { return get[uint64](m, key) }
func (m fakeMetadata) Bool(key string) (bool, bool)        { return get[bool](m, key) }
func (m fakeMetadata) Strings(key string) ([]string, bool) { return get[[]string](m, key) }
func (m fakeMetadata) Floats(key string) ([]float32, bool) { return get[[]float32](m, key) }
func (m fakeMetadata) Ints(key string) ([]int64, bool)     { return get[[]int64](m, key) }
func (m fakeMetadata) with(key string, v any) fakeMetadata {
	c := fakeMetadata{}
	for k, v := range m {
		c[k] = v
	}
	c[key] = v
	return c
}

// readMetadata reads the key-value part of a GGUF version 3 file. The tests
// have a reader of their own so that the package depends on no other.
func readMetadata(data []byte) (fakeMetadata, error) {
	r := &ggufReader{b: data}
	if string(r.next(4)) != "GGUF" || r.u32() != 3 {
		return nil, fmt.Errorf("not GGUF version 3")
	}
	r.u64() // tensors
	m := fakeMetadata{}
	for n := r.u64(); n > 0; n-- {
		key := r.str()
		m[key] = r.value(r.u32())
	}
	return m, nil
}

type ggufReader struct{ b []byte }

func (r *ggufReader) next(n int) []byte { v := r.b[:n]; r.b = r.b[n:]; return v }
func (r *ggufReader) u32() uint32       { return binary.LittleEndian.Uint32(r.next(4)) }
func (r *ggufReader) u64() uint64       { return binary.LittleEndian.Uint64(r.next(8)) }
func (r *ggufReader) str() string       { return string(r.next(int(r.u64()))) }

func (r *ggufReader) value(typ uint32) any {
	switch typ {
	case 0:
		return uint64(r.next(1)[0])
	case 1:
		return int64(int8(r.next(1)[0]))
	case 4:
		return uint64(r.u32())
	case 5:
		return int64(int32(r.u32()))
	case 6:
		return math.Float32frombits(r.u32())
	case 7:
		return r.next(1)[0] != 0
	case 8:
		return r.str()
	case 9:
		return r.array(r.u32(), int(r.u64()))
	case 10:
		return r.u64()
	}
	panic(fmt.Sprintf("GGUF type %d", typ))
}

func (r *ggufReader) array(typ uint32, n int) any {
	switch typ {
	case 8:
		out := make([]string, n)
		for i := range out {
			out[i] = r.str()
		}
		return out
	case 6:
		out := make([]float32, n)
		for i := range out {
			out[i] = math.Float32frombits(r.u32())
		}
		return out
	}
	out := make([]int64, n)
	for i := range out {
		switch v := r.value(typ).(type) {
		case uint64:
			out[i] = int64(v)
		case int64:
			out[i] = v
		}
	}
	return out
}

func readGzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var loaded sync.Map // name -> fakeMetadata

// vocabulary returns the metadata of testdata/NAME.gguf.gz.
func vocabulary(t testing.TB, name string) fakeMetadata {
	t.Helper()
	if m, ok := loaded.Load(name); ok {
		return m.(fakeMetadata)
	}
	m, err := readMetadata(readGzip(t, filepath.Join("testdata", name+".gguf.gz")))
	if err != nil {
		t.Fatal(err)
	}
	loaded.Store(name, m)
	return m
}

func open(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := New(vocabulary(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// names returns the vocabularies of testdata.
func names(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.gguf.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("testdata: %d files, %v", len(paths), err)
	}
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(p), ".gguf.gz")
	}
	return paths
}

// golden is one text with what the reference makes of it.
type golden struct {
	Text    string
	Plain   []TokenID
	Special []TokenID
	Detok   hexBytes `json:"detok_hex"`
}

type hexBytes []byte

func (h *hexBytes) UnmarshalJSON(b []byte) (err error) {
	*h, err = hex.DecodeString(string(bytes.Trim(b, `"`)))
	return err
}

// goldens returns the cases of a file below testdata.
func goldens(t testing.TB, name string) []golden {
	t.Helper()
	var file struct{ Cases []golden }
	if err := json.Unmarshal(readGzip(t, filepath.Join("testdata", name+".json.gz")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 50 {
		t.Fatalf("%s: %d cases", name, len(file.Cases))
	}
	return file.Cases
}
