package gguf

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/tensor"
)

// FuzzOpen shows that no bytes make Open, a getter or Data panic, and that what Open
// accepts lies inside the file.
func FuzzOpen(f *testing.F) {
	f.Add(encode(f, tiny()))
	f.Add(encode(f, every))
	two := tiny()
	two.Version, two.Alignment = 2, 64
	f.Add(encode(f, two))
	for _, typ := range tensor.Types() {
		f.Add(encode(f, gguftest.Model{Tensors: []gguftest.Tensor{{Name: "t", Type: typ, Dims: []int{256, 2}}}}))
	}
	f.Add(encode(f, gguftest.Model{KV: []gguftest.KV{{Key: "split.no", Value: uint16(1)}, {Key: "split.count", Value: uint16(2)}}}))
	for _, c := range hostile {
		if len(c.file) < 1<<12 {
			f.Add([]byte(c.file))
		}
	}
	path := filepath.Join(f.TempDir(), "f.gguf")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		useMetadata(t, file)
		for _, x := range file.Tensors() {
			if x.Bytes <= 0 || x.Offset < 24 || x.Offset > int64(len(b))-x.Bytes {
				t.Fatalf("%q: %d bytes at byte %d of %d", x.Name, x.Bytes, x.Offset, len(b))
			}
			if x.Cols() <= 0 || x.Rows() <= 0 || x.Rows() > math.MaxInt/x.Cols() {
				t.Fatalf("%q: dimensions %v", x.Name, x.Dims)
			}
			got, err := file.Data(x)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(b[x.Offset:x.Offset+x.Bytes]) {
				t.Fatalf("%q: other bytes than the file's", x.Name)
			}
		}
	})
}

// useMetadata calls every getter for every key and compares what they say.
func useMetadata(t *testing.T, f *File) {
	for _, key := range f.Keys() {
		v, ok := f.Value(key)
		if !ok {
			t.Fatalf("%q: no value", key)
		}
		_ = v.String()
		u, isUint := f.Uint(key)
		i, isInt := f.Int(key)
		if isUint && isInt && (i < 0 || u != uint64(i)) {
			t.Fatalf("%q: %d as uint, %d as int", key, u, i)
		}
		f.Float(key)
		f.Bool(key)
		if s, ok := f.String(key); ok && len(s) != v.Len {
			t.Fatalf("%q: text of %d bytes, length %d", key, len(s), v.Len)
		}
		for name, got := range map[string]int{
			"Strings": lengthOf(f.Strings(key)),
			"Floats":  lengthOf(f.Floats(key)),
			"Ints":    lengthOf(f.Ints(key)),
			"Bools":   lengthOf(f.Bools(key)),
		} {
			if got >= 0 && got != v.Len {
				t.Fatalf("%q: %s has %d elements, length %d", key, name, got, v.Len)
			}
		}
	}
}

// lengthOf returns the length of a getter's slice, −1 when it has none.
func lengthOf[T any](s []T, ok bool) int {
	if !ok {
		return -1
	}
	return len(s)
}
