package host

import (
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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
	i, err := p.Open(t.Context(), opening(0))
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
	// Where there is no memory Go says so and ends, or falls over the zero that it got for some.
	for mode, want := range map[string]string{"memory": "out of memory|SIGSEGV", "time": "signal: killed"} {
		cmd := inChild(mode)(context.Background())
		out, err := cmd.CombinedOutput()
		if err == nil || !regexp.MustCompile(want).MatchString(string(out)+err.Error()) {
			t.Errorf("%s: %v: %.300s", mode, err, out)
		}
	}
}

// childOf runs the test binary as a child that compiles the smallest plugin, in a mode.
func childOf(t *testing.T, mode string) (said string, cmd *exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, moduleFile), minimal(0), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = inChild(mode)(context.Background(), dir)
	boundThreads(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out) + err.Error(), cmd
	}
	if names := files(t, dir); len(names) != 2 {
		t.Errorf("%s: nothing was compiled: %q", mode, names)
	}
	return string(out), cmd
}

// The limits of a child are those of the specification, as the system knows them once it
// compiled, and measured: one that goes on to take 2 GiB ends with 1.
func TestChildLimitsAsTheyAre(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells and counts them")
	}
	needsCompiler(t)
	said, _ := childOf(t, "limits")
	for _, want := range []string{`Max cpu time +10 +10 +seconds`, `Max data size +1073741824 +1073741824 +bytes`, `Max core file size +0 +0 +bytes`} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("a child works under\n%s, want %s", said, want)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{runtime.NumCPU(), 64} {
		runtime.GOMAXPROCS(processors)
		said, cmd := childOf(t, "greed")
		peak := peakMemory(cmd.ProcessState)
		t.Logf("with %d processors it had %d MiB", processors, peak>>20)
		// 64 MiB above: what is mapped of files. The race detector's own memory counts and is
		// hardly touched.
		if cmd.ProcessState.Success() || peak > 1<<30+1<<26 || peak < 1<<29 {
			t.Errorf("a child that wants 2 GiB had %d MiB: %v: %.300s", peak>>20, cmd.ProcessState, said)
		}
	}
}

// A child has no network: where it could open a port before, it cannot once it has begun.
func TestChildHasNoNetwork(t *testing.T) {
	if auditArchs := []string{"amd64", "arm64", "arm", "riscv64"}; runtime.GOOS != "linux" || !slices.Contains(auditArchs, runtime.GOARCH) {
		t.Skip("it has one on this system")
	}
	needsCompiler(t)
	said, _ := childOf(t, "network")
	if !strings.Contains(said, "before: <nil>") { // the partner
		t.Errorf("it had none before: the test sees nothing: %s", said)
	}
	if strings.Count(said, "after: ") != 2 || strings.Count(said, "operation not permitted") != 2 {
		t.Errorf("it opens ports: %s", said)
	}
}

// makeSocket opens a port of this machine.
func makeSocket() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return l.Close()
}

// Whatever a file holds, it is decided in 15 seconds: what the steps of Load may take.
func TestStepsOfLoadAreBounded(t *testing.T) {
	child := DefaultCompileTime + time.Second // until it is given up
	if all := child + codeTime; childSeconds > 10 || DefaultCompileTime < childSeconds*time.Second || all > 14*time.Second {
		t.Errorf("a child may work for %d s and is waited for %v, tests take %v, which is %v of 15 s", childSeconds, child, codeTime, all)
	}
}
