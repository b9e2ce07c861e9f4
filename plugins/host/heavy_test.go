package host

import (
	"bytes"
	"context"
	"testing"
	"time"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// Files at the limits of structure, each of its own kind: they are accepted or refused in
// bounded time, and the child's memory is bounded by itself.
func TestHeavyFilesAreBounded(t *testing.T) {
	needsCompiler(t)
	if testing.Short() || racing { // build.sh runs it without the race detector
		t.Skip("it compiles for seconds")
	}
	r := newRuntime(t, Options{Cache: t.TempDir(), Compile: inChild("yes")})
	for _, tt := range []struct {
		name      string
		functions int
		code      []byte
	}{
		{"blocks", 6, bytes.Repeat([]byte{0x41, 0, 0x04, 0x40, 0x0b}, 3999)},
		{"calls", 60, bytes.Repeat([]byte{0x10, 0, 0x1a}, 85000)},
		{"deep stack", 40, append(bytes.Repeat([]byte{0x41, 1}, 60000), bytes.Repeat([]byte{0x6a}, 59999)...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := minimalBuilder(0)
			code := tt.code
			if tt.name == "deep stack" {
				code = append(bytes.Clone(code), 0x1a)
			}
			for range tt.functions {
				b.Func(nil, nil, []wasm.ValType{wasm.I32}, wasmtest.Code(code))
			}
			file := withManifest(b.Bytes(), "")
			began := time.Now()
			p, err := r.Load(context.Background(), file)
			took := time.Since(began)
			t.Logf("%d KiB in %v: %v", len(file)>>10, took, err)
			if err == nil {
				p.Close()
			}
			if took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
