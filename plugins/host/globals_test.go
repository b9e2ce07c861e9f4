package host

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// globalsKept are the mutable globals of the guest below: how each begins, how _initialize
// leaves it, and what each call adds, in bits.
var globalsKept = []struct {
	t                       wasm.ValType
	constant, store, add    byte
	declared, initial, more []byte // constants of the type
	size                    uint
	at                      func(call int) uint64 // bits that a call finds
}{
	{wasm.I32, 0x41, 0x36, 0x6a, wasmtest.Code(3), wasmtest.Code(70_000), wasmtest.Code(1 << 20), 4,
		func(n int) uint64 { return uint64(uint32(70_000 + n<<20)) }},
	{wasm.I64, 0x42, 0x37, 0x7c, wasmtest.Code(-3), wasmtest.Code(1 << 40), wasmtest.Code(1<<33 + 1), 8,
		func(n int) uint64 { return 1<<40 + uint64(n)*(1<<33+1) }},
	{wasm.F32, 0x43, 0x38, 0x92, u32(math.Float32bits(9)), u32(math.Float32bits(-2.5)), u32(math.Float32bits(0.75)), 4,
		func(n int) uint64 { return uint64(math.Float32bits(-2.5 + float32(n)*0.75)) }},
	{wasm.F64, 0x44, 0x39, 0xa0, u64(math.Float64bits(9)), u64(math.Float64bits(1e300)), u64(math.Float64bits(1e298)), 8,
		func(n int) uint64 {
			v := 1e300
			for range n {
				v += 1e298
			}
			return math.Float64bits(v)
		}},
}

// globalsAt is where the guest writes what it finds, 8 bytes for each global.
const globalsAt = 512

// countingGuest keeps its state in globals of all types of numbers: each call of gg_plan
// writes them to memory and changes them all.
func countingGuest() []byte {
	b := minimalBuilder(0)
	var start, plan []byte
	for k, g := range globalsKept {
		index := b.Global(g.t, true, append([]byte{g.constant}, g.declared...))
		start = append(start, wasmtest.Code(g.constant, g.initial, byte(0x24), index)...)
		plan = append(plan, wasmtest.Code(byte(0x41), globalsAt+8*k, byte(0x23), index, g.store, uint(0), uint(0))...)
		plan = append(plan, wasmtest.Code(byte(0x23), index, g.constant, g.more, g.add, byte(0x24), index)...)
	}
	b.Export("_initialize", wasm.KindFunc, b.Func(nil, nil, nil, start))
	b.Export("gg_plan", wasm.KindFunc, b.Func(i32, i32, nil, append(plan, wasmtest.Code(byte(0x41), 0)...)))
	return withManifest(b.Bytes(), `,"limits":{"memory_pages":4}`)
}

// count calls the guest and says where it stands: the number of calls before this one, or
// which global is wrong.
func count(t *testing.T, i *Instance, want int) string {
	t.Helper()
	if _, _, err := i.Call(abi.HookPlan); err != nil {
		t.Fatal(err)
	}
	for k, g := range globalsKept {
		b, _ := i.g.memory.Read(uint32(globalsAt+8*k), 8)
		got := binary.LittleEndian.Uint64(b) & (1<<(8*g.size) - 1)
		if g.size == 8 {
			got = binary.LittleEndian.Uint64(b)
		}
		if got != g.at(want) {
			return fmt.Sprintf("global %d is %#x, want %#x", k, got, g.at(want))
		}
	}
	return ""
}

// What a guest keeps in globals is put back with its memory: in the pool, for guests that
// are made anew, and by snapshots, also where memory grew in between.
func TestGlobalsAreState(t *testing.T) {
	for _, o := range []Options{{Idle: 1}, {Idle: -1}, {Idle: 1, Interpreter: true}} {
		p := load(t, newRuntime(t, o), countingGuest())
		if len(p.globals) != len(globalsKept) {
			t.Fatalf("globals %v", p.globals)
		}
		at := func(i *Instance, want int) {
			t.Helper()
			if wrong := count(t, i, want); wrong != "" {
				t.Errorf("%+v, call %d: %s", o, want, wrong)
			}
		}
		for range 3 {
			i := open(t, p, opening(0))
			at(i, 0)
			at(i, 1)
			state, err := i.Snapshot(nil)
			if err != nil {
				t.Fatal(err)
			}
			at(i, 2)
			at(i, 3)
			for _, grow := range []uint32{0, 1} {
				i.g.memory.Grow(grow)
				if err := i.Restore(state); err != nil {
					t.Fatal(err)
				}
				at(i, 2)
				at(i, 3)
			}
			_ = i.Close()
		}
	}
}

// The partner: where globals are not put back, what a request left there is found.
func TestGlobalsAreFound(t *testing.T) {
	p := load(t, newRuntime(t, Options{Idle: 1}), countingGuest())
	p.globals, p.image.globals = nil, nil
	i := open(t, p, opening(0))
	if wrong := count(t, i, 0); wrong == "" {
		t.Error("what initialisation left is there all the same")
	}
	state, err := i.Snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := i.g.memory.Read(globalsAt, 32)
	want := string(before)
	if err := i.Restore(state); err != nil {
		t.Fatal(err)
	}
	_, _, _ = i.Call(abi.HookPlan)
	if after, _ := i.g.memory.Read(globalsAt, 32); string(after) == want {
		t.Error("the call after a restore finds the same")
	}
	_ = i.Close()
	i = open(t, p, opening(0))
	_, _, _ = i.Call(abi.HookPlan)
	if after, _ := i.g.memory.Read(globalsAt, 32); string(after) == want {
		t.Error("the next request finds the same")
	}
}

// The host can copy no vectors and no references, so no plugin has such state.
func TestGlobalsThatCannotBeKept(t *testing.T) {
	r := newRuntime(t, Options{})
	vector := wasmtest.Code(wasm.Op(0xfd0c), make([]byte, 16))
	null := func(of wasm.ValType) []byte { return wasmtest.Code(byte(0xd0), of) }
	for _, g := range []struct {
		t    wasm.ValType
		init []byte
	}{{wasm.V128, vector}, {wasm.FuncRef, null(wasm.FuncRef)}, {wasm.ExternRef, null(wasm.ExternRef)}} {
		for _, mutable := range []bool{true, false} {
			b := minimalBuilder(0)
			b.Global(g.t, mutable, g.init)
			p, err := r.Load(context.Background(), withManifest(b.Bytes(), ""))
			if mutable != (err != nil) || err != nil && !strings.Contains(err.Error(), "global 0 is mutable and of type") {
				t.Errorf("%v, mutable %v: %v", g.t, mutable, err)
			}
			if err == nil {
				p.Close()
			}
		}
	}
}
