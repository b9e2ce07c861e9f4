package registry

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/sign"
	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// childEnv makes the test binary a child that compiles.
const childEnv = "GANGLION_TEST_COMPILE"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := host.Child(os.Args[len(os.Args)-1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// plugin is the smallest file that is a plugin; its plan hook forces token, and its
// version says which file it is.
func plugin(name, version string, token int) []byte {
	i32 := []wasm.ValType{wasm.I32}
	b := &wasmtest.Builder{}
	b.Memory(1)
	b.Export("gg_abi_1", wasm.KindFunc, b.Func(nil, i32, nil, wasmtest.Code(byte(0x41), 0)))
	b.Export("gg_alloc", wasm.KindFunc, b.Func([]wasm.ValType{wasm.I32, wasm.I32}, i32, nil, wasmtest.Code(byte(0x41), 1024)))
	// stop_reason = 1 + token % 3; return STOP
	b.Export("gg_accept", wasm.KindFunc, b.Func(i32, i32, nil, wasmtest.Code(byte(0x20), uint(0), byte(0x41), 1+token%3, byte(0x36), uint(2), uint(abi.OffStopReason), byte(0x41), int(abi.Stop))))
	return wasm.AppendCustom(b.Bytes(), abi.SectionManifest, fmt.Appendf(nil, `{"abi":"1.0","name":%q,"version":%q,"slot":"bias"}`, name, version))
}

func newRegistry(t *testing.T, o Options) *Registry {
	t.Helper()
	rt, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	o.Runtime = rt
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// put writes a file as a careful operator does: whole or not at all.
func put(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	tmp := filepath.Join(dir, name+".tmp")
	if err := os.WriteFile(tmp, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func anyVersion(t testing.TB, text string) Range {
	t.Helper()
	r, err := ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// version opens a plugin, uses it and tells its version; "" with the error when it cannot
// be had.
func version(t testing.TB, r *Registry, name, in string) (string, error) {
	t.Helper()
	p, err := r.Open(context.Background(), name, anyVersion(t, in))
	if err != nil {
		return "", err
	}
	defer p.Close()
	i, err := p.Open(t.Context(), host.Open{Model: host.Model{Vocab: 10}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Close() }()
	if _, _, err := i.Call(abi.HookAccept); err != nil {
		t.Fatal(err)
	}
	return p.Manifest().Version, nil
}

func want(t *testing.T, r *Registry, name, in, v string, target error) {
	t.Helper()
	got, err := version(t, r, name, in)
	if got != v || !errors.Is(err, target) {
		t.Errorf("%s %s: %q, %v, want %q, %v", name, in, got, err, v, target)
	}
}

func TestFilesComeAndGo(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	r := newRegistry(t, Options{Dir: dir, BuiltIn: fstest.MapFS{"a.wasm": {Data: plugin("a", "1.0.0", 0)}, "README": {}}})
	r.Scan(ctx)
	want(t, r, "a", "", "1.0.0", nil)
	want(t, r, "b", "", "", ErrUnknown)
	put(t, dir, "b.wasm", plugin("b", "1.0.0", 0))
	put(t, dir, "a2.wasm", plugin("a", "2.0.0", 0))
	put(t, dir, "notes.txt", []byte("no plugin"))
	r.Scan(ctx)
	want(t, r, "b", "", "1.0.0", nil)
	want(t, r, "a", "", "2.0.0", nil)
	want(t, r, "a", "^1.0", "1.0.0", nil)
	want(t, r, "a", ">=3", "", ErrVersion)

	put(t, dir, "b.wasm", []byte("broken")) // a failing update does not take its place
	r.Scan(ctx)
	want(t, r, "b", "", "1.0.0", nil)
	plugins, rejected := r.List()
	if len(plugins) != 3 || len(rejected) != 1 || rejected[0].Place != "b.wasm" || plugins[2].Update == "" {
		t.Errorf("%+v, %+v", plugins, rejected)
	}
	put(t, dir, "b.wasm", plugin("b", "1.1.0", 1))
	r.Scan(ctx)
	want(t, r, "b", "", "1.1.0", nil)
	if _, rejected := r.List(); len(rejected) != 0 {
		t.Errorf("%+v", rejected)
	}
	put(t, dir, "c.wasm", plugin("b", "1.1.0", 2)) // the same version twice
	r.Scan(ctx)
	if _, rejected := r.List(); len(rejected) != 1 || !strings.Contains(rejected[0].Reason, "b.wasm") {
		t.Errorf("%+v", rejected)
	}
	for _, f := range []string{"b.wasm", "a2.wasm"} {
		if err := os.Remove(filepath.Join(dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	r.Scan(ctx)
	want(t, r, "a", "", "1.0.0", nil)
	want(t, r, "b", "", "1.1.0", nil) // the other file takes over
	if plugins, _ := r.List(); len(plugins) != 2 || plugins[0].Signature != BuiltIn || plugins[1].Place != "c.wasm" {
		t.Errorf("%+v", plugins)
	}
}

// An update is seen that has the size and, by a coarse clock of the file system, the time of
// the file before it; and a file that is as it was is not loaded again.
func TestUpdatesWithinATick(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	tick := time.Now()
	r := newRegistry(t, Options{Dir: dir, Now: func() time.Time { return tick }})
	at := func(version string, when time.Time) {
		t.Helper()
		put(t, dir, "x.wasm", plugin("x", version, 0))
		if err := os.Chtimes(filepath.Join(dir, "x.wasm"), when, when); err != nil {
			t.Fatal(err)
		}
		r.Scan(ctx)
	}
	at("1.0.0", tick)
	want(t, r, "x", "", "1.0.0", nil)
	at("1.0.1", tick)
	want(t, r, "x", "", "1.0.1", nil)
	before, _ := r.List()
	r.Scan(ctx)
	if after, _ := r.List(); len(after) != 1 || after[0].Loaded != before[0].Loaded {
		t.Errorf("loaded again: %+v", after)
	}
	// The partner: what changed long ago, or has a time to come, is told by its size and time.
	for i, other := range []time.Duration{-time.Hour, time.Hour} {
		version := fmt.Sprintf("1.%d.2", i+1)
		at(version, tick.Add(other))
		want(t, r, "x", "", version, nil)
		at(fmt.Sprintf("1.%d.3", i+1), tick.Add(other))
		want(t, r, "x", "", version, nil)
	}
}

// A hundred swaps under load: no request fails, and each finishes with the version that
// it began with.
func TestSwapsUnderLoad(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "x.wasm", plugin("x", "1.0.0", 0))
	r := newRegistry(t, Options{Dir: dir})
	r.Scan(context.Background())
	var stop atomic.Bool
	var requests, versions atomic.Int64
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			last := ""
			for !stop.Load() {
				p, err := r.Open(context.Background(), "x", Range{})
				if err != nil {
					t.Error(err)
					return
				}
				i, err := p.Open(t.Context(), host.Open{Model: host.Model{Vocab: 10}})
				if err != nil {
					t.Error(err)
					return
				}
				before := p.Manifest().Version
				runtime.Gosched()
				if _, _, err := i.Call(abi.HookAccept); err != nil || i.Plugin().Manifest().Version != before {
					t.Error(err)
				}
				_ = i.Close()
				p.Close()
				requests.Add(1)
				if before != last {
					versions.Add(1)
					last = before
				}
			}
		})
	}
	for n := 1; n <= 100; n++ {
		put(t, dir, "x.wasm", plugin("x", fmt.Sprintf("1.%d.0", n), n))
		if n%10 == 0 {
			put(t, dir, "x.wasm", []byte("broken"))
			r.Scan(context.Background())
			put(t, dir, "x.wasm", plugin("x", fmt.Sprintf("1.%d.0", n), n))
		}
		r.Scan(context.Background())
	}
	stop.Store(true)
	users.Wait()
	want(t, r, "x", "", "1.100.0", nil)
	t.Logf("%d requests saw %d changes of version", requests.Load(), versions.Load())
	if requests.Load() == 0 || versions.Load() < 5 {
		t.Error("there was no load")
	}
}

func TestQuarantine(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "deep", "quarantine.json")
	put(t, dir, "x.wasm", plugin("x", "1.0.0", 0))
	o := Options{Dir: dir, State: state}
	r := newRegistry(t, o)
	r.Scan(context.Background())
	plugins, _ := r.List()
	hash := plugins[0].Hash
	report := func(reason string) { r.Report(Ended{Hash: hash, Name: "x", Version: "1.0.0", Reason: reason}) }
	report("trap")
	report("trap")
	for range watched - 1 { // one of the two is too long ago
		report("")
	}
	report("trap")
	want(t, r, "x", "", "1.0.0", nil)
	report("fuel")
	report("fuel")
	want(t, r, "x", "", "", ErrQuarantined)
	if plugins, _ := r.List(); plugins[0].Quarantined == nil || plugins[0].Quarantined.Reason != "fuel" {
		t.Errorf("%+v", plugins[0])
	}

	r = newRegistry(t, o) // after a restart
	r.Scan(context.Background())
	want(t, r, "x", "", "", ErrQuarantined)
	if ok, err := r.Clear("of nobody"); ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := r.Clear(hash); !ok || err != nil {
		t.Error(ok, err)
	}
	want(t, r, "x", "", "1.0.0", nil)
	report = func(reason string) { r.Report(Ended{Hash: hash, Name: "x", Version: "1.0.0", Reason: reason}) }
	report("trap")
	report("trap")
	report("trap")
	want(t, r, "x", "", "", ErrQuarantined)
	put(t, dir, "x.wasm", plugin("x", "1.0.1", 0)) // until the hash changes
	r.Scan(context.Background())
	want(t, r, "x", "", "1.0.1", nil)

	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = newRegistry(t, o)
	r.Scan(context.Background())
	want(t, r, "x", "", "1.0.1", nil)
}

func TestSignaturePolicy(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	signed, err := sign.Sign(plugin("signed", "1.0.0", 0), private)
	if err != nil {
		t.Fatal(err)
	}
	strange, err := sign.Sign(plugin("strange", "1.0.0", 0), stranger)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := append([]byte(nil), signed...)
	spoilt[strings.Index(string(spoilt), `"bias"`)+1] = 'B'
	put(t, dir, "signed.wasm", signed)
	put(t, dir, "strange.wasm", strange)
	put(t, dir, "unsigned.wasm", plugin("unsigned", "1.0.0", 0))
	put(t, dir, "spoilt.wasm", spoilt)
	for policy, names := range map[Policy]string{UnsignedOK: "signed strange unsigned", Warn: "signed strange unsigned", Require: "built signed"} {
		o := Options{Dir: dir, Policy: policy, Keys: sign.Keys{sign.KeyID(public): public}}
		if policy == Require { // what is in the binary needs no signature
			o.BuiltIn = fstest.MapFS{"built.wasm": {Data: plugin("built", "1.0.0", 0)}}
		}
		r := newRegistry(t, o)
		r.Scan(context.Background())
		plugins, rejected := r.List()
		var have []string
		for _, p := range plugins {
			have = append(have, p.Manifest.Name)
			if trusted := p.Signature == SignedTrusted; trusted != (p.Manifest.Name == "signed") {
				t.Errorf("%s: %s is %s", policy, p.Manifest.Name, p.Signature)
			}
		}
		if got := strings.Join(have, " "); got != names {
			t.Errorf("%s: %s, want %s", policy, got, names)
		}
		found := false
		for _, j := range rejected {
			found = found || j.Place == "spoilt.wasm"
		}
		if !found {
			t.Errorf("%s: a spoilt signature is taken", policy)
		}
	}
	if _, err := New(Options{Runtime: &host.Runtime{}, Policy: "perhaps"}); err == nil {
		t.Error("an unknown policy is taken")
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	r := newRegistry(t, Options{Dir: dir, Poll: 5 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	want(t, r, "x", "", "", ErrUnknown) // it waits for the first scan
	put(t, dir, "x.wasm", plugin("x", "1.0.0", 0))
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := version(t, r, "x", ""); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the file is not found")
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	_ = r.Close()
	if _, err := version(t, r, "x", ""); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	r.Scan(context.Background())
}

func TestOpenWaitsNoLongerThanItsContext(t *testing.T) {
	r := newRegistry(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Open(ctx, "x", Range{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestScripts(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "x.js", []byte("script"))
	r := newRegistry(t, Options{Dir: dir, Script: func(source []byte) ([]byte, error) {
		if string(source) != "script" {
			return nil, errors.New("no script")
		}
		return plugin("x", "1.0.0", 0), nil
	}})
	r.Scan(context.Background())
	want(t, r, "x", "", "1.0.0", nil)
	put(t, dir, "x.js", []byte("another"))
	r.Scan(context.Background())
	want(t, r, "x", "", "1.0.0", nil)
	without := newRegistry(t, Options{Dir: dir})
	without.Scan(context.Background())
	want(t, without, "x", "", "", ErrUnknown)
}

func TestRange(t *testing.T) {
	for text, versions := range map[string]struct{ in, out string }{
		"":           {"0.0.1 1.0.0 9.9.9", "1.0.0-rc.1"},
		"*":          {"0.0.1 1.0.0", "1.0.0-a"},
		"1.2.3":      {"1.2.3 1.2.3+build", "1.2.4 1.2.3-rc.1 1.2.2"},
		"=1.2.3":     {"1.2.3", "1.2.4"},
		"1.2":        {"1.2.0 1.2.9", "1.3.0 1.1.9"},
		"1.2.x":      {"1.2.0 1.2.9", "1.3.0"},
		"1":          {"1.0.0 1.9.9", "2.0.0 0.9.9"},
		"^1.2.3":     {"1.2.3 1.9.0", "1.2.2 2.0.0 2.0.0-rc.1 1.3.0-rc.1"},
		"^0.2.3":     {"0.2.3 0.2.9", "0.3.0 0.2.2"},
		"~1.2.3":     {"1.2.3 1.2.9", "1.3.0 1.2.2"},
		"~1.2":       {"1.2.0 1.2.9", "1.3.0"},
		"~1":         {"1.0.0 1.9.0", "2.0.0"},
		">=1.2 <2":   {"1.2.0 1.9.9", "1.1.9 2.0.0"},
		">1.2.3,<=2": {"1.2.4 2.0.0", "1.2.3 2.0.1"},
		">=1.0.0-rc": {"1.0.0-rc 1.0.0-rc.1 1.0.0 2.0.0", "1.0.0-beta 0.9.0"},
		"v1.2.3":     {"1.2.3", "1.2.4"},
		"1.2.3-rc.1": {"1.2.3-rc.1", "1.2.3 1.2.3-rc.2"},
	} {
		r := anyVersion(t, text)
		for v := range strings.FieldsSeq(versions.in) {
			if !r.Has(v) {
				t.Errorf("%q has not %s", text, v)
			}
		}
		for v := range strings.FieldsSeq(versions.out) {
			if r.Has(v) {
				t.Errorf("%q has %s", text, v)
			}
		}
	}
	for _, bad := range []string{"a", "1.2.3.4", ">", "^", "^x", "1..2", "=>1", "1.2.3 ||", "~>1", "-1", "١", strings.Repeat(">1 ", 40)} {
		if r, err := ParseRange(bad); err == nil {
			t.Errorf("%q is a range: %+v", bad, r)
		}
	}
}

func FuzzRange(f *testing.F) {
	f.Add(">=1.2 <2", "1.2.3")
	f.Fuzz(func(_ *testing.T, text, version string) {
		if r, err := ParseRange(text); err == nil {
			r.Has(version)
		}
	})
}
