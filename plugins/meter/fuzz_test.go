package meter

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// FuzzRewrite: a file is refused by the reader, or its rewritten form is a valid module
// that every engine takes, and its calls behave as those of the original.
//
// The original is not asked of the engine: it allocates what a file claims, and takes
// more than the rewriter does (padded opcodes), or less (nothing known).
func FuzzRewrite(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(wasmtest.Random(seed), seed)
	}
	f.Add(scalarKernels, uint64(0))
	f.Add(simdKernels, uint64(0))
	f.Add(function(nil, nil, nil, code(wasm.OpI64Const, 1000, wasm.OpGlobalSet, uint(0))), uint64(0))
	b := newBench(f)
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithDebugInfoEnabled(false))
	f.Cleanup(func() { r.Close(ctx) })
	f.Fuzz(func(t *testing.T, file []byte, seed uint64) {
		m, err := wasm.Parse(file)
		if err != nil || !modest(m) {
			return
		}
		out, _, err := Rewrite(file)
		if err != nil {
			return
		}
		n, err := wasm.Parse(out)
		if err != nil {
			t.Fatalf("rewritten: %v", err)
		}
		if err := wasm.Validate(n); err != nil {
			t.Fatalf("rewritten: %v", err)
		}
		c, err := r.CompileModule(ctx, out)
		if err != nil {
			t.Fatalf("the engine refuses what was rewritten: %v", err)
		}
		c.Close(ctx)
		if runnable(m) {
			if err := b.compare(file, seed); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// modest reports whether a module costs the engines little. (Check would do, but refuses
// the instructions on tables, which the rewriter has to get right too.)
func modest(m *wasm.Module) bool {
	facts, err := m.Facts()
	if err != nil || len(m.Bodies) > 1000 {
		return false
	}
	for i, f := range facts {
		if f.Bytes > 10_000 || f.ControlOps > 500 || m.Bodies[i].Count > 1000 {
			return false
		}
	}
	for _, t := range m.Tables {
		if t.Min > 1000 {
			return false
		}
	}
	for _, t := range m.Types {
		if len(t.Params) > 128 || len(t.Results) > 128 {
			return false
		}
	}
	return len(m.Memories) == 1 && m.Memories[0].Min <= 16
}

// runnable reports whether the benches can make an instance: imports are what they
// offer, and nothing depends on the bits of a NaN, which engines choose for themselves.
func runnable(m *wasm.Module) bool {
	for i, im := range m.Imports {
		if im.Module != "host" || im.Name != "tick" || len(m.FuncType(uint32(i)).Params) != 1 || len(m.FuncType(uint32(i)).Results) != 1 {
			return false
		}
	}
	return !m.HasStart && !floats(m)
}

// floats reports whether a module has instructions that can leave a NaN.
func floats(m *wasm.Module) bool {
	for _, b := range m.Bodies {
		w := m.Walk(b.Code)
		for in := (wasm.Instr{}); w.Next(&in); {
			if s, ok := in.Op.Signature(); ok && len(s.Push) == 1 && (s.Push[0] == wasm.F32 || s.Push[0] == wasm.F64 || in.Op >= 0xfd00+94 && in.Op <= 0xfd00+95 || in.Op >= 0xfd00+224) {
				return true
			}
		}
	}
	return false
}
