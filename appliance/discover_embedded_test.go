package appliance

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/gpu/gguf"
)

func TestAppendModel(t *testing.T) {
	for _, programSize := range []int{1, embedAlign - 1, embedAlign, embedAlign + 1} {
		dir := t.TempDir()
		program := bytes.Repeat([]byte{0xab}, programSize)
		exe, dst, again := dir+"/exe", dir+"/out", dir+"/again"
		must(t, os.WriteFile(exe, program, 0o700))
		first, second := modelFile(t, "first", dir, "first.gguf"), modelFile(t, "the second", dir, "second.gguf")

		var done, total int64
		must(t, AppendModel(dst, exe, Bundled{Model: first}, func(d, n int64) {
			if d < done {
				t.Errorf("progress went from %d to %d", done, d)
			}
			done, total = d, n
		}))
		checkBundle(t, dst, program, first)
		if info, err := os.Stat(dst); err != nil || done != total || total != info.Size() {
			t.Errorf("progress ended at %d of %d, the file: %v, %v", done, total, info, err)
		}

		// Of a bundle only the program is taken, and a bundle can be replaced.
		must(t, AppendModel(again, dst, Bundled{Model: second}, nil))
		checkBundle(t, again, program, second)
		must(t, AppendModel(dst, dst, Bundled{Model: second}, nil))
		checkBundle(t, dst, program, second)
		names, err := os.ReadDir(dir)
		if must(t, err); len(names) != 5 {
			t.Errorf("left in the folder: %v", names)
		}
	}
}

// checkBundle compares both parts of a bundle and opens the model in place.
func checkBundle(t *testing.T, path string, program []byte, model string) {
	t.Helper()
	offset, size, ok, err := Embedded(path)
	if err != nil || !ok {
		t.Fatalf("Embedded: %v, %v", ok, err)
	}
	content, err := os.ReadFile(path)
	must(t, err)
	want, err := os.ReadFile(model)
	must(t, err)
	if offset%(64<<10) != 0 || !bytes.Equal(content[offset:offset+size], want) {
		t.Errorf("%d bytes at %d are not the model", size, offset)
	}
	if !bytes.HasPrefix(content, program) || len(bytes.Trim(content[len(program):offset], "\x00")) > 0 {
		t.Error("the program was changed")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	f, err := gguf.OpenAt(path, offset, size)
	must(t, err)
	must(t, f.Close())
}

func TestAppendModelErrors(t *testing.T) {
	dir := t.TempDir()
	exe, model, text := dir+"/exe", modelFile(t, "m", dir, "m.gguf"), dir+"/text"
	must(t, os.WriteFile(exe, []byte("program"), 0o700))
	must(t, os.WriteFile(text, []byte("no model"), 0o600))
	must(t, os.WriteFile(dir+"/empty", nil, 0o600))
	must(t, os.WriteFile(dir+"/old", []byte("kept"), 0o600))
	mkdir(t, dir+"/out")
	for _, c := range []struct{ name, dst, exe, model, want string }{
		{"no program", dir + "/old", dir + "/none", model, "none"},
		{"empty program", dir + "/old", dir + "/empty", model, "is empty"},
		{"no model", dir + "/old", exe, dir + "/none", "none"},
		{"not a model", dir + "/old", exe, text, "is not a GGUF file"},
		{"empty model", dir + "/old", exe, dir + "/empty", "is not a GGUF file"},
		{"a folder as the model", dir + "/old", exe, dir, "is not a regular file"},
		{"no folder", dir + "/none/out", exe, model, "none"},
		{"a folder in the way", dir + "/out", exe, model, "out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := AppendModel(c.dst, c.exe, Bundled{Model: c.model}, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if b, err := os.ReadFile(dir + "/old"); err != nil || string(b) != "kept" {
		t.Errorf("the old file holds %q, %v", b, err)
	}
	if left, err := filepath.Glob(dir + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestEmbeddedDamaged(t *testing.T) {
	trailer := func(offset, size, program uint64) string {
		b := []byte(embedMagic)
		for _, n := range []uint64{offset, size, program} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return string(b)
	}
	body := strings.Repeat("x", embedAlign+100)
	const damaged = true
	for _, c := range []struct {
		name, content string
		ok, damaged   bool
	}{
		{"empty", "", false, false},
		{"short", embedMagic, false, false},
		{"no trailer", body, false, false},
		{"whole", body + trailer(embedAlign, 100, 10), true, false},
		{"something behind", body + trailer(embedAlign, 100, 10) + "x", false, false},
		{"cut", body[1:] + trailer(embedAlign, 100, 10), false, damaged},
		{"no program", body + trailer(embedAlign, 100, 0), false, damaged},
		{"program over the model", body + trailer(embedAlign, 100, embedAlign+1), false, damaged},
		{"unaligned", body + trailer(embedAlign+1, 99, 10), false, damaged},
		{"nothing inside", body[:embedAlign] + trailer(embedAlign, 0, 10), false, damaged},
		{"size beyond the end", body + trailer(embedAlign, 101, 10), false, damaged},
		{"sum overflows", body + trailer(embedAlign, 1<<64-1, 10), false, damaged},
		{"offset overflows", body + trailer(1<<63, 100, 10), false, damaged},
		{"offset beyond the end", body + trailer(1<<40, 100, 10), false, damaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, "exe", c.content, 0o700)
			offset, size, ok, err := Embedded(path)
			if ok != c.ok || (err != nil) != c.damaged {
				t.Errorf("got %d, %d, %v, %v", offset, size, ok, err)
			}
			found := Discover(t.Context(), DiscoverOptions{Executable: path})
			if got := len(found) == 1 && !found[0].Available; got != (c.damaged || c.ok) {
				t.Errorf("found %+v", found) // the bytes of the whole one are no model either
			}
		})
	}
	if _, _, _, err := Embedded(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file has no error")
	}
	if found := Discover(t.Context(), DiscoverOptions{Executable: "/nowhere/none"}); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}
