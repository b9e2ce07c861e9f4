package host

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ganglion/plugins/abi"
)

// counted counts the children.
func counted(n *atomic.Int32, mode string) func(ctx context.Context, args ...string) *exec.Cmd {
	start := inChild(mode)
	return func(ctx context.Context, args ...string) *exec.Cmd {
		n.Add(1)
		return start(ctx, args...)
	}
}

// needsCompiler skips where there is nothing to cache.
func needsCompiler(t *testing.T) {
	t.Helper()
	if !compilerWorks() {
		t.Skip("this machine has no compiler")
	}
}

// loadOnce loads a file in a runtime of its own and tells how many children that took.
func loadOnce(t *testing.T, cache string, file []byte) (children int, took time.Duration) {
	t.Helper()
	var n atomic.Int32
	r, err := New(Options{Cache: cache, Compile: counted(&n, "yes")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	began := time.Now()
	p, err := r.Load(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	took = time.Since(began)
	i, err := p.Open(opening(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.Call(abi.HookPlan); err != nil {
		t.Error(err)
	}
	_ = i.Close()
	p.Close()
	return int(n.Load()), took
}

// files lists the files below a folder.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// entryOf are the compiled code and its authentication code, where the cache holds one
// plugin.
func entryOf(t *testing.T, dir string) (code, mac string) {
	t.Helper()
	for _, f := range files(t, dir) {
		switch {
		case strings.HasSuffix(f, macSuffix):
			mac = f
		case entryName.MatchString(filepath.Base(f)):
			code = f
		}
	}
	if code == "" || mac == "" {
		t.Fatalf("the cache holds %q", files(t, dir))
	}
	return code, mac
}

func TestCompiledOnce(t *testing.T) {
	needsCompiler(t)
	dir := filepath.Join(t.TempDir(), "cache")
	// What another version of wazero left stands beside ours.
	if err := os.MkdirAll(filepath.Join(dir, "wazero-v0.9.9-amd64-linux"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if n, _ := loadOnce(t, dir, testGuest(ordinary)); n != 1 {
		t.Fatalf("%d children for a new plugin", n)
	}
	n, took := loadOnce(t, dir, testGuest(ordinary))
	if n != 0 {
		t.Fatalf("%d children for a known plugin", n)
	}
	t.Logf("a hit takes %v, from the file to a plugin", took)
	if runtime.GOOS != "windows" {
		for _, f := range append(files(t, dir), dir) {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			if f == dir && info.Mode().Perm() != 0o700 || filepath.Base(f) == keyFile && info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", f, info.Mode())
			}
		}
	}
	for _, f := range files(t, dir) {
		if strings.Contains(f, "build-") {
			t.Errorf("%s was left behind", f)
		}
	}
}

// Whatever is not as we left it is compiled anew, and what was there is never mapped.
func TestSpoiltCacheIsCompiledAnew(t *testing.T) {
	needsCompiler(t)
	other := testGuest(ordinary + `,"title":"another"`)
	change := func(path string, f func(b []byte) []byte) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, spoil := range map[string]func(dir, code, mac string){
		"bit of the code": func(_, code, _ string) { change(code, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }) },
		"last byte":       func(_, code, _ string) { change(code, func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b }) },
		"cut":             func(_, code, _ string) { change(code, func(b []byte) []byte { return b[:len(b)/2] }) },
		"empty":           func(_, code, _ string) { change(code, func(b []byte) []byte { return nil }) },
		"longer":          func(_, code, _ string) { change(code, func(b []byte) []byte { return append(b, 0) }) },
		"bit of the mac":  func(_, _, mac string) { change(mac, func(b []byte) []byte { b[0] ^= 1; return b }) },
		"cut mac":         func(_, _, mac string) { change(mac, func(b []byte) []byte { return b[:10] }) },
		"no mac":          func(_, _, mac string) { _ = os.Remove(mac) },
		"no code":         func(_, code, _ string) { _ = os.Remove(code) },
		"another key": func(dir, _, _ string) {
			change(filepath.Join(dir, keyFile), func(b []byte) []byte { b[0] ^= 1; return b })
		},
		"cut key":            func(dir, _, _ string) { change(filepath.Join(dir, keyFile), func(b []byte) []byte { return b[:5] }) },
		"name into a folder": func(_, _, mac string) { change(mac, func(b []byte) []byte { copy(b[32:], "../../../"); return b }) },
		"code is a link": func(dir, code, _ string) {
			_ = os.Rename(code, filepath.Join(dir, "elsewhere"))
			if err := os.Symlink(filepath.Join(dir, "elsewhere"), code); err != nil {
				t.Skip(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			loadOnce(t, dir, testGuest(ordinary))
			code, mac := entryOf(t, dir)
			spoil(dir, code, mac)
			if n, _ := loadOnce(t, dir, testGuest(ordinary)); n != 1 {
				t.Errorf("%d children", n)
			}
			if n, _ := loadOnce(t, dir, testGuest(ordinary)); n != 0 {
				t.Errorf("%d children once it was compiled anew", n)
			}
		})
	}
	t.Run("entry of another module", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cache")
		loadOnce(t, dir, withManifest(minimal(0), ``))
		theirs, _ := entryOf(t, dir)
		foreign, err := os.ReadFile(theirs)
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(t.TempDir(), "cache")
		loadOnce(t, dir, other)
		code, _ := entryOf(t, dir)
		if err := os.WriteFile(code, foreign, 0o600); err != nil { // its CRC is right
			t.Fatal(err)
		}
		if n, _ := loadOnce(t, dir, other); n != 1 {
			t.Errorf("%d children", n)
		}
	})
}

func TestChildIsBounded(t *testing.T) {
	needsCompiler(t)
	r := newRuntime(t, Options{Cache: t.TempDir(), Compile: inChild("hang"), CompileTime: 300 * time.Millisecond})
	began := time.Now()
	_, err := r.Load(context.Background(), testGuest(ordinary))
	if err == nil || !strings.Contains(err.Error(), "not done after") || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	r = newRuntime(t, Options{Cache: t.TempDir(), Compile: func(ctx context.Context, _ ...string) *exec.Cmd {
		return inChild("yes")(ctx, "no such folder")
	}})
	if _, err := r.Load(context.Background(), testGuest(ordinary)); err == nil || !strings.Contains(err.Error(), "the child ended") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Load(ctx, testGuest(ordinary)); err == nil {
		t.Error("loaded after the end")
	}
}

// The limits of the child hold: it cannot take more memory or time than they say.
func TestChildLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux counts what a process writes to")
	}
	for mode, want := range map[string]string{"memory": "out of memory", "time": "signal: killed"} {
		cmd := inChild(mode)(context.Background())
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out)+err.Error(), want) {
			t.Errorf("%s: %v: %.300s", mode, err, out)
		}
	}
}
