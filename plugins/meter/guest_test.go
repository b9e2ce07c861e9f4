package meter

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// Shorthands of the tests' programs.
var (
	code = wasmtest.Code
	i32s = []wasm.ValType{wasm.I32}
)

const void = byte(0x40) // the type of a block without parameters and results

// A guest is an instance of a metered module.
type guest struct {
	t testing.TB
	m api.Module
}

// open rewrites a module under a policy and starts it.
func open(t testing.TB, module []byte, p policy, interpreter bool) *guest {
	t.Helper()
	out, _, err := rewrite(module, p)
	if err != nil {
		t.Fatal(err)
	}
	config := wazero.NewRuntimeConfigCompiler()
	if interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config.WithDebugInfoEnabled(false).WithMemoryLimitPages(1024))
	t.Cleanup(func() { r.Close(ctx) })
	m, err := r.InstantiateWithConfig(ctx, out, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	return &guest{t, m}
}

// first is what the counter gets of the fuel of a call: little, so that tests refill it.
const first = 1000

// give gives a module fuel.
func give(m api.Module, fuel int64) {
	m.ExportedGlobal(Fuel).(api.MutableGlobal).Set(uint64(min(fuel, first)))
	m.ExportedGlobal(Rest).(api.MutableGlobal).Set(uint64(max(fuel-first, 0)))
}

// left is what a module has left.
func left(m api.Module) int64 {
	return int64(m.ExportedGlobal(Fuel).Get() + m.ExportedGlobal(Rest).Get())
}

// call gives fuel and calls an export. It returns the results, what is left, and the
// trap.
func (g *guest) call(fuel int64, name string, args ...uint64) ([]uint64, int64, error) {
	give(g.m, fuel)
	results, err := g.m.ExportedFunction(name).Call(context.Background(), args...)
	return results, left(g.m), err
}

// function returns a module with one exported function "f".
func function(params, results, locals []wasm.ValType, body []byte) []byte {
	var b wasmtest.Builder
	b.Memory(1)
	b.Export("f", wasm.KindFunc, b.Func(params, results, locals, body))
	return b.Bytes()
}
