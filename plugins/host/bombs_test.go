package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// verdict is what Load made of a file, and what that took.
type verdict struct {
	Error   string
	CPU     time.Duration // of this process
	Elapsed time.Duration
	Peak    int64 // bytes of memory that it or its child had at most
}

// loadAsServer loads the file that the last argument names in a process that does nothing
// else, with a child that compiles, and says what became of it.
func loadAsServer() {
	path := os.Args[len(os.Args)-1]
	file, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r, err := New(Options{Cache: filepath.Join(filepath.Dir(path), "cache"), Compile: inChild("yes")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	began, cpu := time.Now(), wasmtest.CPUTime()
	p, err := r.Load(context.Background(), file)
	v := verdict{CPU: wasmtest.CPUTime() - cpu, Elapsed: time.Since(began)}
	if err != nil {
		v.Error = err.Error()
	} else {
		p.Close()
	}
	_ = r.Close()
	v.Peak = peakHere()
	_ = json.NewEncoder(os.Stdout).Encode(v)
}

// judged loads a file in a process of its own.
func judged(t *testing.T, file []byte) (v verdict) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := inChild("load")(t.Context(), path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the process ended with %v", err)
	}
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v
}

// TestBombsAreDecided takes every bomb through the whole of Load: those that are refused
// are within 100 ms of a processor; those that the limits made small are compiled, or
// refused by the compiler's limits, within 15 s; none takes more than 1 GiB here or in the
// child.
func TestBombsAreDecided(t *testing.T) {
	needsCompiler(t)
	if racing { // build.sh runs it without the race detector
		t.Skip("times and memory of the race detector say nothing")
	}
	const refusal, any, memory = 100 * time.Millisecond, 15 * time.Second, 1 << 30
	compiled := 0
	for _, b := range wasmtest.Bombs() {
		if b.Harmless && testing.Short() {
			continue // it compiles for seconds
		}
		t.Run(b.Name, func(t *testing.T) {
			v := judged(t, withManifest(b.File, ""))
			for n := 0; n < 4 && !b.Harmless && v.CPU > refusal; n++ { // the collector may be busy
				v = judged(t, withManifest(b.File, ""))
			}
			t.Logf("%d KiB: %v of a processor here, %v in all, %d MiB: %s", len(b.File)>>10, v.CPU, v.Elapsed, v.Peak>>20, v.Error)
			if v.Peak > memory || v.Elapsed > any {
				t.Errorf("it took %v and %d MiB", v.Elapsed, v.Peak>>20)
			}
			switch {
			case !b.Harmless && v.Error == "":
				t.Error("it is loaded")
			case !b.Harmless && v.CPU > refusal:
				t.Errorf("refused after %v", v.CPU)
			case b.Harmless && v.Error == "":
				compiled++
			}
		})
	}
	if compiled == 0 && !testing.Short() {
		t.Error("none of those that the limits made small was compiled: they are no plugins")
	}
}

// Cut anywhere, a file is refused, soon; cut between two sections what is left may be a
// plugin. The partner is the whole file, which is one.
func TestLoadCutFiles(t *testing.T) {
	r := newRuntime(t, Options{})
	file := testGuest(ordinary)
	load(t, r, file)
	m, err := wasm.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	between := map[int]bool{}
	for _, s := range m.Sections {
		between[s.Data.End] = true
	}
	slowest := time.Duration(0)
	for n := 0; n < len(file); n += 1 + n/64 {
		took := 100 * time.Second
		for try := 0; try < 3 && took > 100*time.Millisecond; try++ {
			began := wasmtest.CPUTime()
			p, err := r.Load(t.Context(), file[:n])
			took = min(took, wasmtest.CPUTime()-began)
			if err == nil {
				p.Close()
				if !between[n] {
					t.Errorf("%d of %d bytes are loaded", n, len(file))
				}
				break
			}
		}
		slowest = max(slowest, took)
	}
	if slowest > 100*time.Millisecond && !racing {
		t.Errorf("a file that was cut is decided after %v", slowest)
	}
}
