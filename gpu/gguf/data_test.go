package gguf

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/tensor"
)

// withoutMmap stands for a file system that cannot map files.
func withoutMmap(t *testing.T) {
	t.Helper()
	old := mapFile
	mapFile = func(*os.File, int64, int) ([]byte, error) { return nil, errors.ErrUnsupported }
	t.Cleanup(func() { mapFile = old })
}

// bothWays runs a test with mapped and with read data.
func bothWays(t *testing.T, test func(t *testing.T, mapped bool)) {
	t.Run("mapped", func(t *testing.T) { test(t, true) })
	t.Run("read", func(t *testing.T) {
		withoutMmap(t)
		test(t, false)
	})
}

func TestData(t *testing.T) {
	bothWays(t, func(t *testing.T, mapped bool) {
		for _, align := range []int{0, 8, 4096} {
			m := tiny()
			m.Alignment = align
			f := open(t, save(t, encode(t, m)))
			if got := f.Mapped(); got != mapped {
				t.Errorf("alignment %d: mapped: got %v, want %v", align, got, mapped)
			}
			for _, x := range m.Tensors {
				got := data(t, f, x.Name)
				if x.Data == nil {
					x.Data = make([]byte, 6*34)
				}
				if !bytes.Equal(got, x.Data) {
					t.Errorf("alignment %d: %s: got %v, want %v", align, x.Name, got, x.Data)
				}
				if again := data(t, f, x.Name); &again[0] != &got[0] {
					t.Errorf("%s: was read twice", x.Name)
				}
			}
			c, _ := f.Tensor("c")
			if c.Cols() != 32 || c.Rows() != 6 {
				t.Errorf("c: got %d columns, %d rows, want 32, 6", c.Cols(), c.Rows())
			}
		}
	})
}

func TestDataRefusesForeignTensors(t *testing.T) {
	f := open(t, save(t, encode(t, tiny())))
	x, _ := f.Tensor("a")
	for _, change := range []func(*Tensor){
		func(x *Tensor) { x.Name = "z" },
		func(x *Tensor) { x.Offset += 32 },
		func(x *Tensor) { x.Bytes = 1 << 40 },
		func(x *Tensor) { x.Part = 1 },
	} {
		y := x
		change(&y)
		_, err := f.Data(y)
		refused(t, err, "no such tensor")
	}
}

func TestReadTensor(t *testing.T) {
	f := open(t, save(t, encode(t, tiny())))
	x, _ := f.Tensor("a")
	got := make([]byte, 8)
	if err := f.ReadTensor(x, got, 4); err != nil {
		t.Fatal(err)
	}
	if want := gguftest.F32(2, 3); !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, at := range []int64{-1, 17, 25, math.MaxInt64} {
		refused(t, f.ReadTensor(x, got, at), "outside its 24 bytes")
	}
	if err := f.ReadTensor(x, got, 16); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	bothWays(t, func(t *testing.T, _ bool) {
		before := openFiles(t)
		f, err := Open(save(t, encode(t, tiny())))
		if err != nil {
			t.Fatal(err)
		}
		x, _ := f.Tensor("a")
		for range 2 {
			if err := f.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if _, err := f.Data(x); !errors.Is(err, ErrClosed) {
			t.Errorf("data: got error %v, want ErrClosed", err)
		}
		if err := f.ReadTensor(x, nil, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("read: got error %v, want ErrClosed", err)
		}
		if err := f.Check(); !errors.Is(err, ErrClosed) {
			t.Errorf("check: got error %v, want ErrClosed", err)
		}
		if got, want := f.Architecture(), "llama"; got != want {
			t.Errorf("architecture after close: got %q, want %q", got, want)
		}
		if after := openFiles(t); after != before {
			t.Errorf("%d files are open, before it were %d", after, before)
		}
	})
}

// large is a model whose tensor spans several pages.
func large(t *testing.T) (path string) {
	return save(t, encode(t, gguftest.Model{Tensors: []gguftest.Tensor{{Name: "w", Type: tensor.F32, Dims: []int{1 << 16}}}}))
}

// A file truncated while it is in use is an error in every way of reading it.
func TestTruncatedInUse(t *testing.T) {
	path := large(t)
	f := open(t, path)
	x, _ := f.Tensor("w")
	b := data(t, f, "w")
	sum := func() error {
		var s byte
		for _, v := range b {
			s += v
		}
		if s != 0 {
			t.Error("zeros add to ", s)
		}
		return nil
	}
	whole := func() error { return f.ReadTensor(x, make([]byte, x.Bytes), 0) }
	again := func() error { _, err := f.Data(x); return err }
	ways := []struct {
		name string
		read func() error
	}{
		{"Check", f.Check},
		{"Guard", func() error { return f.Guard(sum) }},
		{"ReadTensor", whole},
		{"Data", again},
	}
	for _, w := range ways {
		if err := w.read(); err != nil {
			t.Errorf("whole file: %s: %v", w.name, err)
		}
	}
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		err := w.read()
		if !errors.Is(err, ErrTruncated) {
			t.Errorf("truncated file: %s: got error %v, want ErrTruncated", w.name, err)
			continue
		}
		refused(t, err, path)
	}
}

// A removed file stays readable; where it was read and not mapped, loaded tensors
// survive even truncation.
func TestRemovedInUse(t *testing.T) {
	bothWays(t, func(t *testing.T, mapped bool) {
		path := large(t)
		f := open(t, path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := f.Check(); err != nil {
			t.Error(err)
		}
		if got, want := len(data(t, f, "w")), 4<<16; got != want {
			t.Errorf("got %d bytes, want %d", got, want)
		}
	})
}

// Guard passes on what is not a fault of the file.
func TestGuardPassesOn(t *testing.T) {
	f := open(t, large(t))
	own := errors.New("own")
	if err := f.Guard(func() error { return own }); err != own {
		t.Errorf("got error %v, want %v", err, own)
	}
	for name, fn := range map[string]func() error{
		"panic": func() error { panic("mine") },
		"nil":   func() error { var p *Tensor; return errors.New(p.Name) },
		"range": func() error { return errors.New([]string{}[len(t.Name())]) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic was swallowed", name)
				}
			}()
			t.Errorf("%s: returned %v", name, f.Guard(fn))
		}()
	}
}

func TestConcurrentUse(t *testing.T) {
	bothWays(t, func(t *testing.T, _ bool) {
		f := open(t, save(t, encode(t, tiny())))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for _, x := range f.Tensors() {
					if _, err := f.Data(x); err != nil {
						t.Error(err)
					}
				}
				if err := f.Check(); err != nil {
					t.Error(err)
				}
				if _, ok := f.Strings("tokenizer.ggml.tokens"); !ok {
					t.Error("no tokens")
				}
			})
		}
		wg.Wait()
	})
}

// A model inside another file reads as on its own, at any offset.
func TestOpenAt(t *testing.T) {
	model := encode(t, tiny())
	bothWays(t, func(t *testing.T, mapped bool) {
		for _, offset := range []int{0, 1, 4095, 4096, 65536, 65537} {
			path := save(t, append(append(bytes.Repeat([]byte{0xee}, offset), model...), 0xee, 0xee))
			f, err := OpenAt(path, int64(offset), int64(len(model)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := f.Mapped(); got != mapped {
				t.Errorf("offset %d: mapped: got %v, want %v", offset, got, mapped)
			}
			if got, want := data(t, f, "d"), gguftest.F32(9); !bytes.Equal(got, want) {
				t.Errorf("offset %d: got %v, want %v", offset, got, want)
			}
			if got, want := f.Size(), int64(len(model)); got != want {
				t.Errorf("offset %d: size: got %d, want %d", offset, got, want)
			}
		}
	})
	path := save(t, append(bytes.Repeat([]byte{0xee}, 4096), model...))
	for _, c := range []struct {
		offset, size int64
		text         string
	}{
		{-1, 10, "no window"},
		{0, -1, "no window"},
		{4096, int64(len(model)) + 1, "do not fit"},
		{math.MaxInt64, math.MaxInt64, "do not fit"},
		{1 << 40, 0, "do not fit"},
		{4096, 0, "byte 0, magic"},
		{4096, 300, "byte "}, // the window bounds the file, not the bytes behind it
		{0, 4096, "byte 0, magic"},
	} {
		_, err := OpenAt(path, c.offset, c.size)
		refused(t, err, c.text)
	}
	paths := splitTiny(t, t.TempDir(), "m")
	_, err := OpenAt(paths[0], 0, int64(len(read(t, paths[0]))))
	refused(t, err, "part 1 of 3", "must be whole")
}

// Any legal path works and comes back as it was given.
func TestPaths(t *testing.T) {
	for _, name := range []string{
		"Загрузки/模型 ü 🦙/a'b\"c $x.gguf",
		"u\u0308/u\u0308.gguf", // decomposed ü
		strings.Repeat("n", 245) + ".gguf",
		"no suffix",
		"new\nline\xff.gguf",
		"-rf.gguf",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, encode(t, tiny()), 0o400); err != nil {
			if !utf8.ValidString(name) {
				continue // some file systems take UTF-8 only
			}
			t.Fatal(err)
		}
		if got := open(t, path).Path(); got != path {
			t.Errorf("got %q, want %q", got, path)
		}
		// In an error too.
		bad := path + "x"
		if len(filepath.Base(bad)) > 250 {
			continue
		}
		write(t, bad, []byte("GGUF"))
		_, err := Open(bad)
		refused(t, err, bad)
	}
	dir := filepath.Join(t.TempDir(), "模型 ü")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	open(t, splitTiny(t, dir, "a'b\"c $x")[1])
}

func TestNotAFile(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none.gguf"))
	refused(t, err, "gguf: ", "none.gguf")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
	_, err = Open(t.TempDir())
	refused(t, err, "is not a regular file")
}

func TestHash(t *testing.T) {
	m := tiny()
	one := open(t, save(t, encode(t, m))).Hash()
	if again := open(t, save(t, encode(t, m))).Hash(); again != one || !strings.HasPrefix(one, "sha256:") || len(one) != 7+64 {
		t.Errorf("got %q, want %q", again, one)
	}
	m.KV[1].Value = "tiny2"
	if other := open(t, save(t, encode(t, m))).Hash(); other == one {
		t.Error("another header has the same hash")
	}
	if other := open(t, save(t, append(encode(t, tiny()), 0))).Hash(); other == one {
		t.Error("another size has the same hash")
	}
}
