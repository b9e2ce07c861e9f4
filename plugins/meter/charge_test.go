package meter

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// used runs "f" with a full tank and returns what it took, the same on both engines.
func used(t *testing.T, module []byte, args ...uint64) (int64, error) {
	t.Helper()
	var n [2]int64
	var err error
	for i, interpreter := range []bool{false, true} {
		g := open(t, module, policy{}, interpreter)
		_, left, e := g.call(tank, "f", args...)
		n[i], err = tank-left, e
	}
	if n[0] != n[1] {
		t.Errorf("%d compiled, %d interpreted", n[0], n[1])
	}
	return n[0], err
}

// What code costs, by hand: the entry is 64, 1 for each parameter, result and local; each
// instruction its price; the last end 1.
func TestCharges(t *testing.T) {
	i64s := []wasm.ValType{wasm.I64}
	for _, tt := range []struct {
		name   string
		module []byte
		args   []uint64
		want   int64
	}{
		{"empty", function(nil, nil, nil, nil), nil, 64 + 1},
		{"parameters, results and locals", function(i32s, i64s, make([]wasm.ValType, 0), code(wasm.OpI64Const, 1)), []uint64{1}, 64 + 2 + 2},
		{"locals", function(nil, nil, []wasm.ValType{wasm.I32, wasm.I32, wasm.V128}, nil), nil, 64 + 3 + 1},
		{"64 locals", function(nil, nil, slices.Repeat([]wasm.ValType{wasm.I32}, 64), nil), nil, 64 + 64 + 1},
		{"many locals take a stack", function(nil, nil, slices.Repeat([]wasm.ValType{wasm.V128}, 1000), nil), nil, 64 + 1000 + 16*936 + 1},
		{"division", function(nil, nil, nil, code(wasm.OpI64Const, 1, wasm.OpI64Const, 1, wasm.Op(0x7f), wasm.OpDrop)), nil, 64 + 2 + 16 + 1 + 1},
		// Head 4, and get, const, sub, tee, br_if for each turn; before it the loop, after it two ends.
		{"countdown", countdown(), []uint64{10}, 64 + 1 + 1 + 10*(4+6) + 1},
		{"dead code is free", function(nil, nil, nil, code(wasm.OpReturn, bytes.Repeat([]byte{1}, 100))), nil, 64 + 1},
		{"a branch pays for what it carries", function(nil, nil, nil, code(wasm.OpBlock, wasm.I64, wasm.OpI64Const, 1, wasm.OpBr, uint(0), wasm.OpEnd, wasm.OpDrop)), nil, 64 + 1 + 1 + 2 + 1 + 1},
		{"fill", fills(1<<20, 1), nil, 64 + 3 + 48 + 1<<16 + 1},
		{"grow", function(nil, nil, nil, code(wasm.OpI32Const, 3, wasm.OpMemoryGrow, byte(0), wasm.OpDrop)), nil, 64 + 1 + 128 + 3*4096 + 1 + 1},
		{"bulk in dead code", function(nil, nil, nil, code(wasm.OpReturn, wasm.OpMemoryFill, byte(0))), nil, 64 + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := used(t, tt.module, tt.args...); err != nil || got != tt.want {
				t.Errorf("%d, %v; want %d", got, err, tt.want)
			}
		})
	}
}

// A length is charged before it is looked at: four gigabytes are out of fuel, not out of
// bounds, unless there is fuel for them.
func TestLengthIsChargedFirst(t *testing.T) {
	for _, op := range [][]byte{
		code(wasm.OpMemoryFill, byte(0)), code(wasm.OpMemoryCopy, byte(0), byte(0)), code(wasm.OpMemoryInit, uint(0), byte(0)),
	} {
		var b wasmtest.Builder
		b.Memory(1)
		b.Raw(wasm.SectionDataCount, code(uint(1)))
		b.Data(code(byte(1), "x"))
		b.Export("f", wasm.KindFunc, b.Func(nil, nil, nil, code(wasm.OpI32Const, 0, wasm.OpI32Const, 0, wasm.OpI32Const, -1, op)))
		g := open(t, b.Bytes(), policy{}, false)
		if _, left, err := g.call(2e6, "f"); err == nil || left >= 0 || kind(err) != "wasm error: unreachable" {
			t.Errorf("%x: left %d, %v; want out of fuel", op, left, err)
		}
		if _, left, err := g.call(tank, "f"); err == nil || left < 0 || kind(err) != "wasm error: out of bounds memory access" {
			t.Errorf("%x: left %d, %v; want out of bounds", op, left, err)
		}
	}
}

// The counter cannot be driven round: from any value that a host sets, and however often
// a guest without fuel is called again.
func TestCounterDoesNotWrap(t *testing.T) {
	g := open(t, fills(1<<20, 3), policy{}, false)
	for _, fuel := range []int64{0, -1, math.MinInt64 / 2} {
		for range 100 {
			_, left, err := g.call(fuel, "f")
			if err == nil || left >= 0 {
				t.Fatalf("from %d: left %d, %v", fuel, left, err)
			}
			fuel = left
		}
	}
	if _, left, err := g.call(math.MaxInt64, "f"); err != nil || left <= 0 {
		t.Errorf("from the largest: left %d, %v", left, err)
	}
}

// Backward branches of every kind pay: br, br_if and br_table to a loop from deep inside
// it, and a loop that is the last of several labels.
func TestEveryBackwardBranchPays(t *testing.T) {
	down := code(wasm.OpLocalGet, uint(0), wasm.OpI32Const, 1, wasm.Op(0x6b), wasm.OpLocalTee, uint(0))
	for name, body := range map[string][]byte{
		"br":               code(wasm.OpLoop, void, down, wasm.OpIf, void, wasm.OpBr, uint(1), wasm.OpEnd, wasm.OpEnd),
		"br_if":            code(wasm.OpLoop, void, wasm.OpBlock, void, wasm.OpBlock, void, down, wasm.OpBrIf, uint(2), wasm.OpEnd, wasm.OpEnd, wasm.OpEnd),
		"br_table":         code(wasm.OpLoop, void, wasm.OpBlock, void, down, wasm.OpBrTable, uint(1), uint(0), uint(1), wasm.OpEnd, wasm.OpEnd),
		"br_table default": code(wasm.OpBlock, void, wasm.OpLoop, void, down, wasm.OpBrTable, uint(2), uint(1), uint(0), uint(0), wasm.OpEnd, wasm.OpEnd),
		"inner to outer":   code(wasm.OpLoop, void, wasm.OpLoop, void, down, wasm.OpBrIf, uint(1), wasm.OpEnd, wasm.OpEnd),
		"out of an else":   code(wasm.OpLoop, void, down, wasm.Op(0x45), wasm.OpIf, void, wasm.OpElse, wasm.OpBr, uint(1), wasm.OpEnd, wasm.OpEnd),
		"with a value":     code(wasm.OpLocalGet, uint(0), wasm.OpLoop, int(1), wasm.OpI32Const, 1, wasm.Op(0x6b), wasm.OpLocalTee, uint(0), wasm.OpLocalGet, uint(0), wasm.OpLocalGet, uint(0), wasm.OpBrIf, uint(0), wasm.OpDrop, wasm.OpEnd, wasm.OpDrop),
	} {
		t.Run(name, func(t *testing.T) {
			var b wasmtest.Builder
			b.Memory(1)
			b.Type(i32s, nil)
			b.Type(i32s, i32s)
			b.Export("f", wasm.KindFunc, b.Func(i32s, nil, nil, body))
			few, err := used(t, b.Bytes(), 100)
			if err != nil {
				t.Fatal(err)
			}
			many, err := used(t, b.Bytes(), 1100)
			if err != nil {
				t.Fatal(err)
			}
			if turn := float64(many-few) / 1000; turn < headPrice+4 {
				t.Errorf("%g for a turn", turn)
			}
			g := open(t, b.Bytes(), policy{}, false)
			if _, left, err := g.call(1000, "f", 1<<31); err == nil || left >= 0 {
				t.Errorf("left %d, %v", left, err)
			}
		})
	}
}

// Names of functions survive, with their indices; other custom sections are left out, and
// so is a name section that claims what it does not hold.
func TestNames(t *testing.T) {
	names := code(byte(0), uint(2), "m", byte(1), uint(4), uint(1), uint(0), "f")
	locals := code(byte(2), uint(1), uint(0))
	for _, tt := range []struct {
		name       string
		have, want []byte
	}{
		{"module and functions", names, names},
		{"locals are dropped", code(names, locals), names},
		{"a count of four billion", code(byte(1), uint(5), uint(1<<32-1)), nil},
		{"an unknown function", code(byte(1), uint(4), uint(1), uint(1), "f"), nil},
		{"cut", names[:len(names)-1], nil},
	} {
		var b wasmtest.Builder
		b.Memory(1)
		b.Export("f", wasm.KindFunc, b.Func(nil, nil, nil, nil))
		b.Custom(".debug_info", []byte{1, 2, 3})
		b.Custom("name", tt.have)
		out, _, err := Rewrite(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasm.Parse(out)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Custom(".debug_info"); ok {
			t.Errorf("%s: debugging information of the original is left in", tt.name)
		}
		if got, _ := m.Custom("name"); !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %x, want %x", tt.name, got, tt.want)
		}
	}
}
