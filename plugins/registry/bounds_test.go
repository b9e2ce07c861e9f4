package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"ganglion/plugins/host"
)

// TestTransientFailuresAreTriedAgain: the first child does not begin, as on a machine
// without memory; nothing about the file changes.
func TestTransientFailuresAreTriedAgain(t *testing.T) {
	broken, children := true, 0
	rt, err := host.New(host.Options{Cache: t.TempDir(), Compile: func(ctx context.Context, args ...string) *exec.Cmd {
		children++
		if broken {
			return exec.CommandContext(ctx, filepath.Join(t.TempDir(), "missing"))
		}
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(os.Environ(), childEnv+"=1")
		return cmd
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if rt.Interpreter() {
		t.Skip("nothing is compiled here")
	}
	now := time.Unix(1e9, 0)
	dir, ctx := t.TempDir(), context.Background()
	put(t, dir, "x.wasm", plugin("x", "1.0.0", 0))
	put(t, dir, "y.wasm", []byte("no plugin"))
	r, err := New(Options{Runtime: rt, Dir: dir, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Scan(ctx)
	want(t, r, "x", "", "", ErrUnknown)
	if _, rejected := r.List(); len(rejected) != 2 {
		t.Errorf("%+v", rejected)
	}
	broken = false
	r.Scan(ctx) // too early
	want(t, r, "x", "", "", ErrUnknown)
	now = now.Add(firstRetry)
	r.Scan(ctx)
	want(t, r, "x", "", "1.0.0", nil)
	if _, rejected := r.List(); len(rejected) != 1 || children != 2 {
		t.Errorf("%d children, %+v", children, rejected)
	}
}

// TestFirstScanHoldsNobodyElse: who asks for a plugin of the binary or for none waits for
// no file that has another name.
func TestFirstScanHoldsNobodyElse(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "slow.js", []byte("slow 1.0.0"))
	put(t, dir, "v2.js", []byte("a 2.0.0"))
	block, reading := make(chan struct{}), 0
	script := func(source []byte) ([]byte, error) {
		if reading++; reading > 2 { // the names were read
			<-block
		}
		name, version, _ := strings.Cut(string(source), " ")
		return plugin(name, version, 0), nil
	}
	r := newRegistry(t, Options{Dir: dir, Script: script, BuiltIn: fstest.MapFS{"a.wasm": {Data: plugin("a", "1.0.0", 0)}, "b.wasm": {Data: plugin("b", "1.0.0", 0)}}})
	done := make(chan struct{})
	go func() { defer close(done); r.Scan(context.Background()) }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p, err := r.Open(ctx, "b", Range{})
	if err != nil {
		t.Fatalf("a plugin of the binary: %v", err)
	}
	p.Close()
	if _, err := r.Open(ctx, "nobody", Range{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown name: %v", err)
	}
	for _, name := range []string{"slow", "a"} { // a newer a may come
		short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if p, err := r.Open(short, name, Range{}); err == nil {
			p.Close()
			t.Errorf("%s did not wait for its file", name)
		}
		cancel()
	}
	close(block)
	<-done
	want(t, r, "a", "", "2.0.0", nil)
}

func TestWhatRequestsBringAboutIsExcused(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "x1.wasm", plugin("x", "1.0.0", 0))
	put(t, dir, "x2.wasm", plugin("x", "1.1.0", 0))
	r := newRegistry(t, Options{Dir: dir})
	r.Scan(context.Background())
	plugins, _ := r.List()
	report := func(reason string) {
		r.Report(Ended{Hash: plugins[0].Hash, Name: "x", Version: "1.1.0", Reason: reason})
	}
	for _, reason := range []string{"open", "memory", "quota", "livelock"} {
		for range 2 * tolerate {
			report(reason)
		}
	}
	want(t, r, "x", "", "1.1.0", nil)
	for range tolerate {
		report("trap")
	}
	want(t, r, "x", "", "1.0.0", nil) // what worked before takes over
	want(t, r, "x", "1.1.0", "", ErrQuarantined)
}

// TestNamesOfTheBinary: a file of a built-in's name keeps what it stores to itself, and
// needs a trusted signature where the operator wants to be warned.
func TestNamesOfTheBinary(t *testing.T) {
	for policy, version := range map[Policy]string{UnsignedOK: "2.0.0", Warn: "1.0.0"} {
		dir := t.TempDir()
		put(t, dir, "a.wasm", plugin("a", "2.0.0", 0))
		r := newRegistry(t, Options{Dir: dir, Policy: policy, BuiltIn: fstest.MapFS{"a.wasm": {Data: plugin("a", "1.0.0", 0)}}})
		r.Scan(context.Background())
		want(t, r, "a", "", version, nil)
		plugins, rejected := r.List()
		if policy == Warn != (len(rejected) == 1) {
			t.Errorf("%s: %+v", policy, rejected)
		}
		for _, p := range plugins {
			if owner := r.Owner(p.Hash); (owner == "") != (p.Signature == BuiltIn) {
				t.Errorf("%s: %s is of %q", policy, p.Place, owner)
			}
		}
	}
}

func TestRecordsGoWithTheirFiles(t *testing.T) {
	dir := t.TempDir()
	r := newRegistry(t, Options{Dir: dir})
	for n := range 5 {
		put(t, dir, "x.wasm", plugin("x", fmt.Sprintf("1.0.%d", n), 0))
		r.Scan(context.Background())
		plugins, _ := r.List()
		r.Report(Ended{Hash: plugins[0].Hash, Name: "x", Version: "1"})
		r.Report(Ended{Hash: plugins[0].Hash, Name: "x", Version: "1", Settings: "s", Reason: "trap"})
	}
	if len(r.records) > 1 || len(r.owners) > 1 || len(r.settings) > 1 {
		t.Errorf("%d records, %d owners, %d settings", len(r.records), len(r.owners), len(r.settings))
	}
}

func TestNumbersOfVersionsAreBounded(t *testing.T) {
	for _, text := range []string{"^18446744073709551615", "~1.18446744073709551615.0", "99999999999"} {
		if _, err := ParseRange(text); err == nil {
			t.Errorf("%s is a range", text)
		}
	}
	if r, err := ParseRange("^999999999.0.0"); err != nil || !r.Has("999999999.5.0") || r.Has("1000000000.0.0") {
		t.Errorf("%v", err)
	}
}
