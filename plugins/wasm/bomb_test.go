package wasm_test

import (
	"runtime"
	"testing"
	"time"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// decide does what is done to a file before anything else: Parse and Check.
func decide(file []byte) error { return check(file, wasm.PluginLimits()) }

// TestBombs decides every bomb within 100 ms and a few times its own size of memory.
func TestBombs(t *testing.T) {
	for _, b := range wasmtest.Bombs() {
		t.Run(b.Name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			took := time.Duration(1 << 62)
			var err error
			for range 3 { // the garbage collector may be busy
				start := wasmtest.CPUTime()
				err = decide(b.File)
				took = min(took, wasmtest.CPUTime()-start)
				if took < 100*time.Millisecond {
					break
				}
			}
			runtime.ReadMemStats(&after)
			t.Logf("%d bytes: %v: %v", len(b.File), took, err)
			if took > limit100 {
				t.Errorf("decided after %v", took)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 5*64<<20 {
				t.Errorf("%d MiB of memory", used>>20)
			}
			if (err == nil) != b.Harmless {
				t.Errorf("harmless: %v, but %v", b.Harmless, err)
			}
		})
	}
}

// The validity of the heaviest files that Check lets through is decided in linear time.
func TestValidateIsLinear(t *testing.T) {
	i32s := make32(16)
	for _, tt := range []struct {
		name   string
		change func(*wasmtest.Builder)
	}{
		{"straight code", func(b *wasmtest.Builder) {
			for range 60 {
				b.Func(nil, nil, nil, repeat(87000, wasm.OpI32Const, 0, wasm.OpDrop))
			}
		}},
		{"results of calls pile up", func(b *wasmtest.Builder) {
			f := b.Func(nil, i32s, nil, code(wasm.OpUnreachable))
			for range 60 {
				b.Func(nil, nil, nil, code(repeat(130000, wasm.OpCall, uint(f)), wasm.OpUnreachable))
			}
		}},
		{"blocks of many values", func(b *wasmtest.Builder) {
			params := b.Type(make32(128), nil)
			for range 600 {
				b.Func(nil, nil, nil, code(wasm.OpUnreachable, repeat(400, wasm.OpBlock, int(params), wasm.OpUnreachable, wasm.OpEnd)))
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := wasm.Parse(plugin(tt.change))
			if err != nil {
				t.Fatal(err)
			}
			if err := wasm.Check(m, wasm.PluginLimits()); err != nil {
				t.Fatal(err)
			}
			start := wasmtest.CPUTime()
			err = wasm.Validate(m)
			took := wasmtest.CPUTime() - start
			t.Logf("%d bytes: %v: %v", len(m.Bytes), took, err)
			if took > 20*limit100 {
				t.Errorf("decided after %v", took)
			}
		})
	}
}

// TestCutFiles cuts files at many places: none is accepted that is not the whole, and
// none does harm.
func TestCutFiles(t *testing.T) {
	for seed := range uint64(30) {
		file := wasmtest.Random(seed)
		whole := 0
		for n := range file {
			m, err := wasm.Parse(file[:n])
			if err != nil {
				continue
			}
			// What is left may be a module in its own right, between two sections.
			whole++
			if err := wasm.Validate(m); err == nil && n > 8 && whole > 12 {
				t.Errorf("seed %d: %d of %d bytes accepted", seed, n, len(file))
			}
		}
		// A byte changed is refused or read, and nothing else.
		for n := range file {
			changed := append([]byte(nil), file...)
			changed[n] ^= byte(1 + n*7)
			if m, err := wasm.Parse(changed); err == nil && wasm.Check(m, wasm.PluginLimits()) == nil {
				_ = wasm.Validate(m)
			}
		}
	}
}
