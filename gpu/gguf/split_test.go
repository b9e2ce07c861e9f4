package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/tensor"
)

// splitTiny writes the tiny model in three parts.
func splitTiny(t *testing.T, dir, name string) []string {
	t.Helper()
	paths, err := gguftest.WriteSplit(dir, name, tiny(), 3)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Whichever part is named, the whole model loads and reads as the unsplit one.
func TestSplitLoads(t *testing.T) {
	whole := open(t, save(t, encode(t, tiny())))
	paths := splitTiny(t, t.TempDir(), "m")
	for i, path := range paths {
		f := open(t, path)
		if got := f.Path(); got != path {
			t.Errorf("part %d: path: got %q, want %q", i+1, got, path)
		}
		if got := f.Parts(); !slices.Equal(got, paths) {
			t.Errorf("part %d: parts: got %q, want %q", i+1, got, paths)
		}
		if got, want := f.Architecture(), "llama"; got != want {
			t.Errorf("part %d: architecture: got %q, want %q", i+1, got, want)
		}
		var size int64
		for _, p := range paths {
			size += int64(len(read(t, p)))
		}
		if got := f.Size(); got != size {
			t.Errorf("part %d: size: got %d, want %d", i+1, got, size)
		}
		list := f.Tensors()
		if got, want := len(list), len(whole.Tensors()); got != want {
			t.Fatalf("part %d: got %d tensors, want %d", i+1, got, want)
		}
		for j, x := range whole.Tensors() {
			if got, want := list[j].Name, x.Name; got != want {
				t.Errorf("part %d: tensor %d: got %q, want %q", i+1, j, got, want)
			}
			if got, want := data(t, f, x.Name), data(t, whole, x.Name); !bytes.Equal(got, want) {
				t.Errorf("part %d: %s: got %v, want %v", i+1, x.Name, got, want)
			}
		}
	}
}

func TestSplitRefused(t *testing.T) {
	part := func(i int) string { return fmt.Sprintf("m-%05d-of-00003.gguf", i) }
	cases := []struct {
		name string
		harm func(t *testing.T, dir string) // what happens to the good parts m-…
		open string
		text []string
	}{
		{"part 2 missing", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, part(2))) },
			part(1), []string{part(2), "part 2 of 3 is missing"}},
		{"part 1 missing", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, part(1))) },
			part(3), []string{part(1), "part 1 of 3 is missing"}},
		{"renamed", func(t *testing.T, dir string) {
			os.Rename(filepath.Join(dir, part(2)), filepath.Join(dir, "other.gguf"))
		}, "other.gguf", []string{"other.gguf: is part 2 of 3", `does not end in "-00002-of-00003.gguf"`}},
		{"renamed to another number", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, part(3)), read(t, filepath.Join(dir, part(2))))
		}, part(1), []string{part(3) + ": holds part 2 of 3, its name says part 3 of 3"}},
		{"opened by the wrong number", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, part(3)), read(t, filepath.Join(dir, part(2))))
		}, part(3), []string{"is part 2 of 3, but its name"}},
		{"joined", func(t *testing.T, dir string) {
			var all []byte
			for i := range 3 {
				all = append(all, read(t, filepath.Join(dir, part(i+1)))...)
			}
			write(t, filepath.Join(dir, "joined.gguf"), all)
		}, "joined.gguf", []string{"is part 1 of 3 and another GGUF begins at byte", "joined"}},
		{"joined under the first name", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, part(1)), append(read(t, filepath.Join(dir, part(1))), read(t, filepath.Join(dir, part(2)))...))
		}, part(1), []string{"joined"}},
		{"part of another model", func(t *testing.T, dir string) {
			m := tiny()
			m.Tensors = append(m.Tensors, gguftest.Tensor{Name: "e", Type: tensor.F32}, gguftest.Tensor{Name: "f", Type: tensor.F32})
			paths, err := gguftest.WriteSplit(t.TempDir(), "n", m, 3)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, part(3)), read(t, paths[2]))
		}, part(1), []string{"a part of another model?", "6 tensors", "hold 4"}},
		{"tensor in two parts", func(t *testing.T, dir string) {
			b := read(t, filepath.Join(dir, part(3)))
			write(t, filepath.Join(dir, part(3)), bytes.Replace(b, []byte("\x01\x00\x00\x00\x00\x00\x00\x00c"), []byte("\x01\x00\x00\x00\x00\x00\x00\x00a"), 1))
		}, part(1), []string{part(3), `tensor "a" is also in`, part(1)}},
		{"part 3 truncated", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, part(3)), read(t, filepath.Join(dir, part(3)))[:40])
		}, part(1), []string{"part 3 of 3", part(3), "byte"}},
		{"part 2 is a whole model", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, part(2)), encode(t, tiny()))
		}, part(1), []string{part(2) + ": holds part 1 of 1, its name says part 2 of 3"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			splitTiny(t, dir, "m")
			c.harm(t, dir)
			before := openFiles(t)
			_, err := Open(filepath.Join(dir, c.open))
			refused(t, err, append(c.text, "gguf: ")...)
			if strings.Contains(c.name, "missing") && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want an error that is fs.ErrNotExist", err)
			}
			if after := openFiles(t); after != before {
				t.Errorf("%d files are open, before it were %d", after, before)
			}
		})
	}
}

func TestSplitKeysRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		kv   []gguftest.KV
		text string
	}{
		{"no = count", []gguftest.KV{{Key: "split.no", Value: uint16(3)}, {Key: "split.count", Value: uint16(3)}}, `key "split.no": 3, but the model has 3 parts`},
		{"no without count", []gguftest.KV{{Key: "split.no", Value: uint16(1)}}, `key "split.no": 1, but the model has 1 parts`},
		{"count is text", []gguftest.KV{{Key: "split.count", Value: "3"}}, `key "split.count": "3" is not a count`},
		{"negative", []gguftest.KV{{Key: "split.tensors.count", Value: int32(-1)}}, `-1 is not a count`},
		{"count 2^64-1", []gguftest.KV{{Key: "split.count", Value: ^uint64(0)}}, "does not end in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(save(t, encode(t, gguftest.Model{KV: c.kv})))
			refused(t, err, c.text)
		})
	}
	for _, count := range []uint16{0, 1} {
		open(t, save(t, encode(t, gguftest.Model{KV: []gguftest.KV{{Key: "split.no", Value: uint16(0)}, {Key: "split.count", Value: count}}})))
	}
}
