package builtin

import (
	"context"
	"runtime/debug"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/sdk/sdktest"
	"ganglion/plugins/wasm/wasmtest"
)

// TestThousandInstances: a thousand requests with a plugin at once, each at its first token
// over a vocabulary of 262,144, take less than 150 MiB, and each less than 128 KiB; the
// examples in C and Rust stand for all that such guests are.
func TestThousandInstances(t *testing.T) {
	const count, most, mostEach = 1000, 150 << 20, 128 << 10
	files := map[string]func(testing.TB) []byte{}
	for _, name := range []string{"min-p", "xtc", "mirostat2"} {
		files[name] = func(testing.TB) []byte { file, _ := Module(name); return file }
	}
	for _, lang := range []string{"c", "rust"} {
		files["example in "+lang] = func(t testing.TB) []byte { return sdktest.Example(t, lang) }
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			p, err := newHost(t).Load(context.Background(), file(t))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			debug.FreeOSMemory()
			before := wasmtest.Resident(t)
			for range count {
				firstToken(t, openPlugin(t, p, nil))
			}
			debug.FreeOSMemory()
			grown := wasmtest.Resident(t) - before
			t.Logf("%.1f MiB, %d KiB each", float64(grown)/(1<<20), grown>>10/count)
			if grown > most || grown/count > mostEach {
				t.Errorf("%d MiB for %d instances, %d KiB each, want at most %d and %d", grown>>20, count, grown>>10/count, most>>20, mostEach>>10)
			}
		})
	}
}

// firstToken is one as a plugin that truncates or chooses sees it.
func firstToken(t *testing.T, i *host.Instance) {
	t.Helper()
	fill(i, 1)
	for _, h := range []abi.Hook{abi.HookPlan, abi.HookLogits, abi.HookChoose, abi.HookAccept} {
		if _, _, err := i.Call(h); err != nil {
			t.Fatal(err)
		}
	}
}
