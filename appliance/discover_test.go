package appliance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/gguf/gguftest"
)

// modelFile writes a tiny GGUF whose content depends on the name.
func modelFile(t *testing.T, name string, path ...string) string {
	t.Helper()
	return ggufFile(t, filepath.Join(path...), gguftest.Model{
		KV:      []gguftest.KV{{Key: "general.architecture", Value: "llama"}, {Key: "general.name", Value: name}},
		Tensors: []gguftest.Tensor{tinyTensor("a", 1)},
	})
}

func tinyTensor(name string, v float32) gguftest.Tensor {
	return gguftest.Tensor{Name: name, Dims: []int{1}, Data: gguftest.F32(v)}
}

func ggufFile(t *testing.T, path string, m gguftest.Model) string {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := gguftest.Write(path, m); err != nil {
		t.Fatal(err)
	}
	return path
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// must fails the test on the error of a call without a result.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// brief is what tests compare of an entry.
func brief(list []Found) []string {
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = f.Source + ": " + f.Name
		if !f.Available {
			out[i] += " (unavailable)"
		}
	}
	return out
}

func expect(t *testing.T, got []Found, want ...string) {
	t.Helper()
	if b := brief(got); !slices.Equal(b, want) {
		t.Errorf("got  %q\nwant %q", b, want)
	}
}

func ollamaModel(t *testing.T, dir, hash string, name ...string) {
	t.Helper()
	modelFile(t, hash, dir, "blobs", "sha256-"+hash)
	manifest(t, dir, map[string]any{"layers": []map[string]any{
		{"mediaType": "application/vnd.ollama.image.projector", "digest": "sha256:00"},
		{"mediaType": ollamaModelLayer, "digest": "sha256:" + hash},
	}}, name...)
}

func manifest(t *testing.T, dir string, content any, name ...string) {
	t.Helper()
	b, err := json.Marshal(content)
	must(t, err)
	path := filepath.Join(append([]string{dir, "manifests"}, name...)...)
	mkdir(t, filepath.Dir(path))
	must(t, os.WriteFile(path, b, 0o600))
}

// TestDiscoverOrder puts one model into every place.
func TestDiscoverOrder(t *testing.T) {
	root := t.TempDir()
	home, bin, work, data, extra := root+"/home", root+"/bin", root+"/work", root+"/data", root+"/extra"
	flag := modelFile(t, "flag", root, "named.gguf")
	exe := filepath.Join(bin, "ganglion")
	mkdir(t, bin)
	must(t, os.WriteFile(exe+".plain", []byte("program"), 0o755))
	must(t, AppendModel(exe, exe+".plain", Bundled{Model: modelFile(t, "inside", root, "inside.gguf")}, nil))
	modelFile(t, "own", data, "models", "own.gguf")
	modelFile(t, "beside", bin, "beside.gguf")
	modelFile(t, "cwd", work, "cwd.GGUF")
	hub := filepath.Join(home, ".cache/huggingface/hub/models--o--r")
	blob := modelFile(t, "hub", hub, "blobs", "1234")
	mkdir(t, hub+"/snapshots/abc")
	must(t, os.Symlink(blob, hub+"/snapshots/abc/hub.gguf"))
	modelFile(t, "llama", home, ".cache/llama.cpp/o_r_llama.gguf")
	modelFile(t, "lm", home, ".lmstudio/models/a/b/lm.gguf")
	modelFile(t, "lm2", home, ".cache/lm-studio/models/a/lm2.gguf")
	ollamaModel(t, filepath.Join(home, ".ollama/models"), "aa11", "registry.ollama.ai", "library", "gemma3", "270m")
	modelFile(t, "jan", home, ".local/share/Jan/data/llamacpp/models/jan-nano/model.gguf")
	modelFile(t, "extra", extra, "x", "extra.gguf")

	o := DiscoverOptions{Flag: flag, Executable: exe, DataDir: data, WorkDir: work, Home: home, Extra: []string{extra}, GOOS: "linux"}
	got := Discover(t.Context(), o)
	expect(t, got, "flag: named", "embedded: ganglion", "Ganglion: own", "folder: beside", "folder: cwd", "Hugging Face: hub",
		"llama.cpp: o_r_llama", "LM Studio: lm", "LM Studio: lm2", "Ollama: gemma3:270m", "Jan: jan-nano", "config: extra")

	ids := map[string]bool{}
	for i, again := range Discover(t.Context(), o) {
		if again != got[i] {
			t.Errorf("the second scan has %+v, the first %+v", again, got[i])
		}
		if ids[again.ID] || !regexp.MustCompile(`^[A-Za-z0-9_-]{16}$`).MatchString(again.ID) {
			t.Errorf("id %q", again.ID)
		}
		ids[again.ID] = true
		if again.Bytes <= 0 || again.Note != "" {
			t.Errorf("%+v", again)
		}
	}
}

func TestDiscoverPlacesOfOtherSystems(t *testing.T) {
	home := t.TempDir()
	type vars = map[string]string
	for _, c := range []struct {
		goos, file, want string
		env              vars
	}{
		{"darwin", "Library/Caches/llama.cpp/a.gguf", "llama.cpp: a", nil},
		{"darwin", "Library/Application Support/Jan/data/llamacpp/models/b/model.gguf", "Jan: b", nil},
		{"windows", "local/llama.cpp/c.gguf", "llama.cpp: c", vars{"LOCALAPPDATA": home + "/local"}},
		{"windows", "roaming/Jan/data/d.gguf", "Jan: d", vars{"APPDATA": home + "/roaming"}},
		{"linux", "hubcache/models--o--r/snapshots/1/e.gguf", "Hugging Face: e", vars{"HF_HUB_CACHE": home + "/hubcache", "HF_HOME": "/none"}},
		{"linux", "hf/hub/models--o--r/snapshots/1/f.gguf", "Hugging Face: f", vars{"HF_HOME": home + "/hf"}},
		{"linux", "xdg/huggingface/hub/models--o--r/snapshots/1/g.gguf", "Hugging Face: g", vars{"XDG_CACHE_HOME": home + "/xdg"}},
		{"linux", "xdg2/llama.cpp/h.gguf", "llama.cpp: h", vars{"XDG_CACHE_HOME": home + "/xdg2"}},
		{"linux", "lc/i.gguf", "llama.cpp: i", vars{"LLAMA_CACHE": home + "/lc"}},
		{"linux", "lc2/models--o--r/snapshots/1/j.gguf", "Hugging Face: j", vars{"LLAMA_CACHE": home + "/lc2"}},
		{"linux", "xd/Jan/data/k.gguf", "Jan: k", vars{"XDG_DATA_HOME": home + "/xd"}},
	} {
		path := modelFile(t, c.file, home, c.file)
		expect(t, Discover(t.Context(), DiscoverOptions{Home: home, Getenv: getenvOf(c.env), GOOS: c.goos}), c.want)
		must(t, os.Remove(path))
	}
}

func TestDiscoverOllama(t *testing.T) {
	dir := t.TempDir()
	ollamaModel(t, dir, "aa", "registry.ollama.ai", "library", "a", "latest")
	ollamaModel(t, dir, "bb", "registry.ollama.ai", "someone", "b", "1b")
	ollamaModel(t, dir, "bb", "registry.ollama.ai", "someone", "b", "same")
	outside := modelFile(t, "outside", dir, "x.gguf")
	layer := func(digest string) any {
		return map[string]any{"layers": []map[string]string{{"mediaType": ollamaModelLayer, "digest": digest}}}
	}
	manifest(t, dir, layer("sha256:../../x.gguf"), "h", "o", "escape", "1")
	manifest(t, dir, layer("sha256:cc"), "h", "o", "missing", "1")
	manifest(t, dir, []int{1}, "h", "o", "odd", "1")
	got := Discover(t.Context(), DiscoverOptions{Getenv: getenvOf(map[string]string{"OLLAMA_MODELS": dir}), GOOS: "linux"})
	expect(t, got, "Ollama: a:latest", "Ollama: someone/b:1b")
	for _, f := range got {
		if f.Path == outside {
			t.Error("a manifest led out of the folder")
		}
	}
}

func TestDiscoverOnce(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	one := modelFile(t, "one", a, "one.gguf")
	must(t, os.Link(one, b+"/hard.gguf"))
	must(t, os.Symlink(one, b+"/soft.gguf"))
	content, err := os.ReadFile(one)
	must(t, err)
	must(t, os.WriteFile(b+"/copy.gguf", content, 0o600))
	modelFile(t, "two", b, "two.gguf") // as many bytes as one.gguf
	must(t, os.Symlink(a, a+"/loop"))
	must(t, os.Symlink(b, a+"/link"))
	// a/link leads to b, which so comes before a/one.gguf.
	expect(t, Discover(t.Context(), DiscoverOptions{Extra: []string{a, b, a}}), "config: copy", "config: two")
	expect(t, Discover(t.Context(), DiscoverOptions{Flag: one, Extra: []string{a, b}}), "flag: one", "config: two")
}

func TestDiscoverSkips(t *testing.T) {
	dir := t.TempDir()
	arch := func(a string, more ...gguftest.KV) []gguftest.KV {
		return append([]gguftest.KV{{Key: "general.architecture", Value: a}}, more...)
	}
	tensors := []gguftest.Tensor{tinyTensor("a", 1)}
	ggufFile(t, dir+"/vocab.gguf", gguftest.Model{KV: arch("llama")})
	ggufFile(t, dir+"/clip.gguf", gguftest.Model{KV: arch("clip"), Tensors: tensors})
	ggufFile(t, dir+"/typed.gguf", gguftest.Model{KV: arch("llama", gguftest.KV{Key: "general.type", Value: "mmproj"}), Tensors: tensors})
	ggufFile(t, dir+"/adapter.gguf", gguftest.Model{KV: arch("llama", gguftest.KV{Key: "general.type", Value: "adapter"}), Tensors: tensors})
	modelFile(t, "p", dir, "mmproj-F16.gguf")
	modelFile(t, "p2", dir, "gemma.mmproj-f16.gguf")
	modelFile(t, "bin", dir, "model.bin")
	must(t, os.WriteFile(dir+"/empty.gguf", nil, 0o600))
	must(t, os.WriteFile(dir+"/text.gguf", []byte(strings.Repeat("no model ", 9)), 0o600))
	must(t, os.Symlink(dir+"/gone", dir+"/dangling.gguf"))
	mkdir(t, dir+"/folder.gguf")
	ggufFile(t, dir+"/typed-model.gguf", gguftest.Model{KV: arch("llama", gguftest.KV{Key: "general.type", Value: "model"}), Tensors: tensors})
	expect(t, Discover(t.Context(), DiscoverOptions{Extra: []string{dir}}), "config: typed-model")
	// Named by the user they are shown.
	got := Discover(t.Context(), DiscoverOptions{Flag: dir + "/vocab.gguf"})
	if len(got) != 1 || got[0].Note == "" {
		t.Errorf("got %+v", got)
	}
	expect(t, Discover(t.Context(), DiscoverOptions{Flag: dir + "/none.gguf"}), "flag: none (unavailable)")
}

func TestDiscoverSplit(t *testing.T) {
	dir := t.TempDir()
	m := gguftest.Model{
		KV:      []gguftest.KV{{Key: "general.architecture", Value: "llama"}},
		Tensors: []gguftest.Tensor{tinyTensor("a", 1), tinyTensor("b", 2), tinyTensor("c", 3)},
	}
	parts, err := gguftest.WriteSplit(dir, "big", m, 3)
	must(t, err)
	var bytes int64
	for _, p := range parts {
		info, err := os.Stat(p)
		must(t, err)
		bytes += info.Size()
	}
	got := Discover(t.Context(), DiscoverOptions{Flag: parts[1], Extra: []string{dir}})
	expect(t, got, "flag: big")
	if got[0].Bytes != bytes || got[0].Path != parts[0] {
		t.Errorf("got %+v, want %d bytes at %s", got[0], bytes, parts[0])
	}
	must(t, os.Remove(parts[0]))
	got = Discover(t.Context(), DiscoverOptions{Extra: []string{dir}})
	expect(t, got, "config: big (unavailable)")
	if got[0].Note != "1 of its 3 files are missing" {
		t.Errorf("note %q", got[0].Note)
	}
}

// TestDiscoverUnreadable uses a fake: root can read every folder.
func TestDiscoverUnreadable(t *testing.T) {
	dir := t.TempDir()
	modelFile(t, "a", dir, "a.gguf")
	modelFile(t, "c", dir, "locked", "b.gguf")
	modelFile(t, "c", dir, "z", "c.gguf")
	s := &scan{ctx: t.Context(), walked: map[string]int{}, readDir: func(path string) ([]fs.DirEntry, error) {
		if strings.HasSuffix(path, "locked") {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
		}
		return readDirBounded(path)
	}}
	s.place(place{dir: dir, source: "config", depth: 3})
	s.place(place{dir: dir + "/unplugged", source: "config"})
	s.place(place{dir: dir + "/not-installed", source: "Jan"})
	s.place(place{dir: dir + "/a.gguf", source: "config"})
	s.ollama(place{dir: dir + "/not-installed", source: "Ollama"})
	expect(t, s.found, "config: a", "config: locked (unavailable)", "config: c", "config: unplugged (unavailable)")
	if got, want := s.found[1].Note, "cannot be read: permission denied"; got != want {
		t.Errorf("note %q, want %q", got, want)
	}
}

func TestDiscoverBounds(t *testing.T) {
	dir := t.TempDir()
	deep := dir + strings.Repeat("/d", maxScanDepth)
	modelFile(t, "in reach", deep, "reach.gguf")
	modelFile(t, "too deep", deep, "d", "deep.gguf")
	expect(t, Discover(t.Context(), DiscoverOptions{Extra: []string{dir}}), "config: reach")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect(t, Discover(ctx, DiscoverOptions{Extra: []string{dir}}))

	var names []fs.DirEntry
	for i := range 10 {
		names = append(names, fs.FileInfoToDirEntry(fakeInfo(fmt.Sprintf("d%d", i))))
	}
	reads := 0
	s := &scan{ctx: t.Context(), walked: map[string]int{}, readDir: func(string) ([]fs.DirEntry, error) {
		reads++
		return names, nil
	}}
	s.place(place{dir: dir, source: "config", depth: maxScanDepth})
	if reads > maxScanEntries+1 {
		t.Errorf("%d folders were read", reads)
	}
	if _, err := readDirBounded(os.DevNull); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading a device as a folder: %v", err)
	}
}

// fakeInfo is a folder of that name.
type fakeInfo string

func (f fakeInfo) Name() string     { return string(f) }
func (fakeInfo) Size() int64        { return 0 }
func (fakeInfo) Mode() fs.FileMode  { return fs.ModeDir }
func (fakeInfo) ModTime() time.Time { return time.Time{} }
func (fakeInfo) IsDir() bool        { return true }
func (fakeInfo) Sys() any           { return nil }
