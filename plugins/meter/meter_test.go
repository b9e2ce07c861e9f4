package meter

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// The confirmed hole: a module that names the global one past its own is invalid, becomes
// valid when the counter is put there, and fills its own tank.
func TestCounterIsOutOfReach(t *testing.T) {
	refill := code(wasm.OpI64Const, 1000, wasm.OpGlobalSet, uint(0))
	module := function(nil, nil, nil, refill)
	if _, _, err := Rewrite(module); !errors.Is(err, wasm.ErrInvalid) {
		t.Fatalf("%v, want an invalid module", err)
	}
	// Without the look at the original the hole is open.
	g := open(t, module, policy{trustInput: true}, false)
	if _, left, err := g.call(100, "f"); err != nil || left != 1000 {
		t.Errorf("left %d, %v: this module was made to show the hole", left, err)
	}
}

// The same with the locals that the rewriter adds: reading one tells a guest what the
// counter holds, and writing the other changes what a bulk instruction pays.
func TestAddedLocalsAreOutOfReach(t *testing.T) {
	module := function(nil, []wasm.ValType{wasm.I64}, nil, code(wasm.OpLocalGet, uint(0)))
	if _, _, err := Rewrite(module); !errors.Is(err, wasm.ErrInvalid) {
		t.Fatalf("%v, want an invalid module", err)
	}
	g := open(t, module, policy{trustInput: true}, false)
	if results, left, err := g.call(100, "f"); err != nil || results[0] != uint64(left) {
		t.Errorf("%v, left %d, %v: this module was made to show the hole", results, left, err)
	}
}

func TestReservedExportsAreRefused(t *testing.T) {
	var b wasmtest.Builder
	b.Global(wasm.I64, true, code(wasm.OpI64Const, 7))
	b.Export("__gg_fuel", wasm.KindGlobal, 0)
	if _, _, err := Rewrite(b.Bytes()); !errors.Is(err, wasm.ErrLimit) {
		t.Errorf("%v, want a refusal", err)
	}
}

// Code runs on fuel or not at all.
func TestCounterStartsEmpty(t *testing.T) {
	out, _, err := Rewrite(function(nil, nil, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	m, err := r.Instantiate(ctx, out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ExportedFunction("f").Call(ctx); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("%v, want a trap", err)
	}
}

func TestGlobalsAndStartAreExported(t *testing.T) {
	var b wasmtest.Builder
	b.Memory(1)
	b.Global(wasm.I32, false, code(wasm.OpI32Const, 1))
	b.Global(wasm.I64, true, code(wasm.OpI64Const, 2))
	b.Global(wasm.F64, true, code(wasm.OpF64Const, make([]byte, 8)))
	b.Global(wasm.FuncRef, true, code(wasm.OpRefNull, wasm.FuncRef))
	start := b.Func(nil, nil, nil, code(wasm.OpI64Const, 3, wasm.OpGlobalSet, uint(1)))
	b.Raw(wasm.SectionStart, code(start))
	module := b.Bytes()
	out, info, err := Rewrite(module)
	if err != nil {
		t.Fatal(err)
	}
	want := []Global{{"__gg_g1", wasm.I64}, {"__gg_g2", wasm.F64}}
	if !info.HasStart || len(info.Globals) != 2 || info.Globals[0] != want[0] || info.Globals[1] != want[1] {
		t.Errorf("%+v, want globals %v and a start function", info, want)
	}
	m, err := wasm.Parse(out)
	if err != nil {
		t.Fatal(err)
	}
	if m.HasStart {
		t.Error("the start function would run before there is fuel")
	}
	g := open(t, module, policy{}, false)
	if got := g.m.ExportedGlobal("__gg_g1").Get(); got != 2 {
		t.Errorf("global 1 is %d before start, want 2", got)
	}
	if _, _, err := g.call(1000, Start); err != nil || g.m.ExportedGlobal("__gg_g1").Get() != 3 {
		t.Errorf("start: %v, global 1 is %d, want 3", err, g.m.ExportedGlobal("__gg_g1").Get())
	}
}
