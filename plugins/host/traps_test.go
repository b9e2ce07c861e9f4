package host

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// Traps that compilers do not let a source ask for, and the growth of tables, as rows beside
// those of TestFaults. The partner of each is the row before it: the same code with numbers
// that are right.
func TestFaultsOfInstructions(t *testing.T) {
	constant := func(v int) []byte { return wasmtest.Code(byte(0x41), v) }
	indirect := func(b *wasmtest.Builder, params []wasm.ValType, entry int) []byte {
		f := b.Func(i32, i32, nil, wasmtest.Code(byte(0x20), uint(0)))
		b.Table(4)
		b.Element(wasmtest.Code(byte(0), constant(0), wasm.OpEnd, uint(1), f)) // entries 1 to 3 are empty
		code := wasmtest.Code(constant(entry), byte(0x11), b.Type(params, i32), byte(0))
		if len(params) > 0 {
			code = append(constant(0), code...)
		}
		return code
	}
	bulk := func(at, from, n int, code ...byte) []byte {
		return wasmtest.Code(constant(at), constant(from), constant(n), code, constant(0))
	}
	for _, tt := range []struct {
		name string
		code func(b *wasmtest.Builder) []byte
		want string // in the error; "": none
	}{
		{"an indirect call", func(b *wasmtest.Builder) []byte { return indirect(b, i32, 0) }, ""},
		{"an indirect call of another type", func(b *wasmtest.Builder) []byte { return indirect(b, nil, 0) }, "indirect call type mismatch"},
		{"an indirect call of an empty entry", func(b *wasmtest.Builder) []byte { return indirect(b, i32, 3) }, "invalid table access"},
		{"an indirect call behind the table", func(b *wasmtest.Builder) []byte { return indirect(b, i32, 4) }, "invalid table access"},
		{"memory.fill", func(*wasmtest.Builder) []byte { return bulk(2<<16-100, 7, 100, 0xfc, 0x0b, 0) }, ""},
		{"memory.fill out of bounds", func(*wasmtest.Builder) []byte { return bulk(2<<16-100, 7, 101, 0xfc, 0x0b, 0) }, "out of bounds memory access"},
		{"memory.copy", func(*wasmtest.Builder) []byte { return bulk(4096, 2<<16-100, 100, 0xfc, 0x0a, 0, 0) }, ""},
		{"memory.copy from out of bounds", func(*wasmtest.Builder) []byte { return bulk(4096, 2<<16-100, 101, 0xfc, 0x0a, 0, 0) }, "out of bounds memory access"},
		{"memory.copy to out of bounds", func(*wasmtest.Builder) []byte { return bulk(2<<16-100, 4096, 101, 0xfc, 0x0a, 0, 0) }, "out of bounds memory access"},
	} {
		for _, interpreter := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/interpreter=%v", tt.name, interpreter), func(t *testing.T) {
				b := &wasmtest.Builder{}
				base(b, 2, 0)
				b.Export("gg_plan", wasm.KindFunc, b.Func(i32, i32, nil, tt.code(b)))
				i := open(t, load(t, newRuntime(t, Options{Interpreter: interpreter}), withManifest(b.Bytes(), "")), opening(0))
				_, _, err := i.Call(abi.HookPlan)
				if tt.want == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if codeOf(err) != CodeTrap || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want a trap: %s", err, tt.want)
				}
			})
		}
	}
}

// A table has the entries that its file says. What would change it is no plugin.
func TestTablesDoNotGrow(t *testing.T) {
	r := newRuntime(t, Options{})
	null := wasmtest.Code(byte(0xd0), wasm.FuncRef)
	zero := wasmtest.Code(byte(0x41), 0)
	for name, tt := range map[string]struct {
		code    []byte
		refused bool
	}{
		"table.size": {wasmtest.Code(byte(0xfc), byte(0x10), uint(0)), false}, // the partner
		"table.get":  {wasmtest.Code(zero, byte(0x25), uint(0), byte(0xd1)), false},
		"table.grow": {wasmtest.Code(null, zero, byte(0xfc), byte(0x0f), uint(0)), true},
		"table.fill": {wasmtest.Code(zero, null, zero, byte(0xfc), byte(0x11), uint(0), zero), true},
		"table.set":  {wasmtest.Code(zero, null, byte(0x26), uint(0), zero), true},
		"table.copy": {wasmtest.Code(zero, zero, zero, byte(0xfc), byte(0x0e), uint(0), uint(0), zero), true},
	} {
		b := minimalBuilder(0)
		b.Table(4)
		b.Export("gg_plan", wasm.KindFunc, b.Func(i32, i32, nil, tt.code))
		p, err := r.Load(context.Background(), withManifest(b.Bytes(), ""))
		if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			p.Close()
		}
	}
}
