package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

var i32 = []wasm.ValType{wasm.I32}

// minimal is the smallest module that is a plugin; minor is what gg_abi_1 returns.
func minimal(minor int) []byte { return minimalBuilder(minor).Bytes() }

func minimalBuilder(minor int) *wasmtest.Builder {
	b := &wasmtest.Builder{}
	base(b, 1, minor)
	return b
}

// base adds what every plugin has. Imports must be there before.
func base(b *wasmtest.Builder, pages uint, minor int) {
	b.Memory(pages)
	b.Export("gg_abi_1", wasm.KindFunc, b.Func(nil, i32, nil, wasmtest.Code(byte(0x41), minor)))
	b.Export("gg_alloc", wasm.KindFunc, b.Func([]wasm.ValType{wasm.I32, wasm.I32}, i32, nil, wasmtest.Code(byte(0x41), 1024)))
}

func TestLoadRefuses(t *testing.T) {
	r := newRuntime(t, Options{})
	build := func(f func(b *wasmtest.Builder)) []byte {
		b := minimalBuilder(0)
		f(b)
		return withManifest(b.Bytes(), "")
	}
	imported := func(module, name string, params, results []wasm.ValType) []byte {
		b := &wasmtest.Builder{}
		b.ImportFunc(module, name, params, results)
		base(b, 1, 0)
		return withManifest(b.Bytes(), "")
	}
	loop := wasmtest.Code(byte(0x03), byte(0x40), byte(0x0c), uint(0), byte(0x0b)) // loop br 0 end
	large := &wasmtest.Builder{}
	base(large, 65, 0)
	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":              {nil, ""},
		"text":                 {[]byte("#!/bin/sh\nexit 0\n"), ""},
		"no manifest":          {minimal(0), "ganglion.manifest"},
		"bad manifest":         {wasm.AppendCustom(minimal(0), abi.SectionManifest, []byte(`{"abi":"1.0"}`)), "/name"},
		"a newer interface":    {withManifest(minimal(1), ""), "1.1"},
		"unknown import":       {imported("ganglion", "system", nil, nil), "no such function"},
		"import of wrong type": {imported("ganglion", "log", i32, i32), "is of type"},
		"foreign import":       {imported("env", "abort", nil, nil), "env"},
		"WASI without leave":   {imported("wasi_snapshot_preview1", "fd_write", []wasm.ValType{wasm.I32, wasm.I32, wasm.I32, wasm.I32}, i32), "wasi_snapshot_preview1"},
		"hook of wrong type": {build(func(b *wasmtest.Builder) {
			b.Export("gg_plan", wasm.KindFunc, b.Func(nil, i32, nil, wasmtest.Code(byte(0x41), 0)))
		}), "gg_plan"},
		"hook is a memory": {build(func(b *wasmtest.Builder) { b.Export("gg_plan", wasm.KindMemory, 0) }), "gg_plan"},
		"hook missing":     {withManifest(minimal(0), `,"hooks":["plan"]`), "gg_plan"},
		"run without events": {build(func(b *wasmtest.Builder) {
			b.Export("gg_run", wasm.KindFunc, b.Func(i32, i32, nil, wasmtest.Code(byte(0x41), 0)))
		}), "hooks"},
		"self without hook":   {withManifest(minimal(0), `,"draft":"self"`), "gg_rollback"},
		"command":             {build(func(b *wasmtest.Builder) { b.Export("_start", wasm.KindFunc, b.Func(nil, nil, nil, nil)) }), "_start"},
		"name of the meter":   {build(func(b *wasmtest.Builder) { b.Export("__gg_fuel", wasm.KindMemory, 0) }), "__gg_"},
		"endless _initialize": {build(func(b *wasmtest.Builder) { b.Export("_initialize", wasm.KindFunc, b.Func(nil, nil, nil, loop)) }), "fuel"},
		"trap in _initialize": {build(func(b *wasmtest.Builder) {
			b.Export("_initialize", wasm.KindFunc, b.Func(nil, nil, nil, wasmtest.Code(byte(0x00))))
		}), "unreachable"},
		"passive data":    {build(func(b *wasmtest.Builder) { b.Data(wasmtest.Code(byte(1), "x")) }), "passive"},
		"much memory":     {withManifest(large.Bytes(), ""), "65 pages"},
		"large table":     {build(func(b *wasmtest.Builder) { b.Table(20000) }), "entries"},
		"large file":      {append(withManifest(minimal(0), ""), make([]byte, MaxFileBytes)...), "bytes"},
		"asset twice":     {wasm.AppendCustom(wasm.AppendCustom(withManifest(minimal(0), ""), "ganglion.asset:a", nil), "ganglion.asset:a", nil), "twice"},
		"bad golden test": {wasm.AppendCustom(withManifest(minimal(0), ""), abi.SectionTests, []byte("{}\n")), "golden"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			p, err := r.Load(context.Background(), tt.file)
			if err == nil {
				p.Close()
				t.Fatal("it is loaded")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
			if d := time.Since(began); d > 15*time.Second {
				t.Errorf("refused after %v", d)
			}
		})
	}
	load(t, r, withManifest(minimal(0), "")) // the partner: without the fault it is a plugin
}

func TestGolden(t *testing.T) {
	r := newRuntime(t, Options{})
	for line, want := range map[string]string{
		`{"name":"a","steps":[{"hook":"plan","want":{}}]}`:                                                                                  "",
		`{"steps":[{"hook":"plan","want":{"actions":["EDITS"]}}]}`:                                                                          "actions none, want EDITS",
		`{"config":{"mode":30},"steps":[{"hook":"plan","want":{"actions":["EDITS"],"edits":[[0,"ADD",0]]}}]}`:                               "",
		`{"config":{"mode":30},"steps":[{"hook":"plan","want":{"actions":["EDITS"],"edits":[[1,"ADD",0]]}}]}`:                               "edit 0 is 0 0 0, want [1 ADD 0]",
		`{"config":{"mode":30},"steps":[{"hook":"plan","want":{"actions":["EDITS"],"edits":[]}}]}`:                                          "1 edits, want 0",
		`{"config":{"mode":40},"steps":[{"hook":"logits","ids":[5,3],"logits":[2,1],"want":{"actions":["CANDS"],"ids":[5],"logits":[2]}}]}`: "",
		`{"config":{"mode":40},"steps":[{"hook":"logits","ids":[5,3],"logits":[2,1],"want":{"actions":["CANDS"],"ids":[3]}}]}`:              "candidates [5], want [3]",
		`{"config":{"mode":40},"steps":[{"hook":"logits","ids":[5,3],"logits":[2,1],"want":{"actions":["CANDS"],"logits":[3]}}]}`:           "logit 0 is 2, want 3",
		`{"steps":[{"hook":"choose","want":{"actions":["TOKEN"],"token":3}}]}`:                                                              "",
		`{"steps":[{"hook":"choose","want":{"actions":["TOKEN"],"token":4}}]}`:                                                              "token 3, want 4",
		`{"config":{"mode":62},"steps":[{"hook":"accept","tokens":[1],"want":{"actions":["STOP"],"stop":3}}]}`:                              "",
		`{"config":{"mode":5},"steps":[{"hook":"plan","want":{"error":"trap"}}]}`:                                                           "",
		`{"config":{"mode":5},"steps":[{"hook":"plan","want":{}}]}`:                                                                         "trap",
		`{"steps":[{"hook":"plan","want":{"error":"trap"}}]}`:                                                                               "no error, want trap",
		`{"steps":[]}`:                                      "no steps",
		`{"steps":[{"hook":"run"}]}`:                        "no hook",
		`{"steps":[{"hook":"plan","surprise":1}]}`:          "surprise",
		`{"name":"x","name":"y"}`:                           "twice",
		`{"config":{"mode":"x"},"steps":[{"hook":"plan"}]}`: "/mode",
		strings.Repeat("\n", 1001):                          "more than 1000",
	} {
		p, err := r.Load(context.Background(), wasm.AppendCustom(testGuest(ordinary), abi.SectionTests, []byte(line+"\n")))
		if err == nil {
			p.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.120s: %v, want %q", line, err, want)
		}
	}
}

// TestGoldenTestsAreBounded: a file's tests may take two seconds, however many they are and
// however much fuel each of their calls burns.
func TestGoldenTestsAreBounded(t *testing.T) {
	r := newRuntime(t, Options{})
	// Nearly all the fuel that there is for a call, with rests, so that each is fine.
	guest := turns(60, 80_000, true)
	tested := func(calls int) []byte {
		step := `{"hook":"accept","tokens":[1],"want":{}},`
		line := `{"steps":[` + strings.TrimSuffix(strings.Repeat(step, calls), ",") + "]}\n"
		return wasm.AppendCustom(guest, abi.SectionTests, []byte(line))
	}
	// Work is measured in processor time: a busy machine takes longer by the clock, for which
	// the partner, whose tests are no fault, is given the time.
	const few = 10
	r.codeTime = time.Minute
	began := wasmtest.CPUTime()
	load(t, r, tested(few))
	one := (wasmtest.CPUTime() - began) / few
	r.codeTime = codeTime
	began = wasmtest.CPUTime()
	p, err := r.Load(context.Background(), tested(int(4*goldenMost/one)+1))
	if took := wasmtest.CPUTime() - began; err == nil || !strings.Contains(err.Error(), "the tests take more than 2s") || took > goldenMost+goldenMost/2 {
		t.Errorf("tests of %v: %v after %v of a processor", 4*goldenMost, err, took)
	}
	if err == nil {
		p.Close()
	}
}

// TestCodeOfAFileIsBounded: what a file does at its start, and as its tests open it, ends at
// the deadline, however much fuel there is; the partner has the time.
func TestCodeOfAFileIsBounded(t *testing.T) {
	loop := wasmtest.Code(byte(0x03), byte(0x40), byte(0x0c), uint(0), byte(0x0b))
	begin := minimalBuilder(0)
	begin.Export("_initialize", wasm.KindFunc, begin.Func(nil, nil, nil, loop))
	tests := wasm.AppendCustom(testGuest(ordinary), abi.SectionTests, []byte(`{"config":{"mode":92},"steps":[{"hook":"plan","want":{}}]}`+"\n"))
	for name, file := range map[string][]byte{"at its start": withManifest(begin.Bytes(), ""), "as its tests open it": tests} {
		r := newRuntime(t, Options{})
		r.codeTime = time.Minute
		began := wasmtest.CPUTime()
		_, err := r.Load(t.Context(), file)
		whole := wasmtest.CPUTime() - began
		if err == nil || !strings.Contains(err.Error(), "used all of ") || errors.Is(err, ErrTransient) {
			t.Errorf("%s, with the time for it: %v", name, err)
		}
		r.codeTime = 2 * time.Millisecond // a fast processor burns all fuel in ten times as long
		began = wasmtest.CPUTime()
		_, err = r.Load(t.Context(), file)
		took := wasmtest.CPUTime() - began
		if err == nil || !strings.Contains(err.Error(), "2ms") || !errors.Is(err, ErrTransient) || took > time.Second {
			t.Errorf("%s: %v after %v of a processor", name, err, took)
		}
		t.Logf("%s: %v of a processor, %v with the deadline", name, whole, took)
	}
}

// goldenMost is what the specification of the pipeline grants tests.
const goldenMost = 2 * time.Second

func TestPluginIsCounted(t *testing.T) {
	r := newRuntime(t, Options{})
	p, err := r.Load(context.Background(), testGuest(ordinary))
	if err != nil {
		t.Fatal(err)
	}
	i, err := p.Open(t.Context(), opening(0))
	if err != nil {
		t.Fatal(err)
	}
	p.Close() // the instance keeps it
	if _, _, err := i.Call(abi.HookPlan); err != nil {
		t.Error(err)
	}
	_ = i.Close()
	if p.Retain() {
		t.Error("it is back from the dead")
	}
	if _, err := p.Open(t.Context(), opening(0)); codeOf(err) != CodeOpen {
		t.Errorf("%v", err)
	}
}

func TestInspect(t *testing.T) {
	m, err := Inspect(testGuest(ordinary))
	if err != nil || m.Name != "guest" {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := Inspect(minimal(0)); err == nil {
		t.Error("a module without a manifest is a plugin")
	}
}
