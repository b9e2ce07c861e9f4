package meter

import (
	"testing"
	"time"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// endless is a loop that never leaves.
func endless() []byte {
	return function(nil, nil, nil, code(wasm.OpLoop, void, wasm.OpBr, uint(0), wasm.OpEnd))
}

// countdown loops as often as its parameter says; it is what the partners run, which have
// to come to an end.
func countdown() []byte {
	return function(i32s, nil, nil, code(
		wasm.OpLoop, void,
		wasm.OpLocalGet, uint(0), wasm.OpI32Const, 1, wasm.Op(0x6b), wasm.OpLocalTee, uint(0),
		wasm.OpBrIf, uint(0),
		wasm.OpEnd))
}

// tree is a tower of functions without loops, each calling the next one twice: 2^depth
// calls.
func tree(depth int) []byte {
	var b wasmtest.Builder
	b.Memory(1)
	next := b.Func(nil, nil, nil, nil)
	for range depth {
		next = b.Func(nil, nil, nil, code(wasm.OpCall, next, wasm.OpCall, next))
	}
	b.Export("f", wasm.KindFunc, next)
	return b.Bytes()
}

// recursion calls itself as deep as its parameter says.
func recursion() []byte {
	return function(i32s, nil, nil, code(
		wasm.OpLocalGet, uint(0),
		wasm.OpIf, void,
		wasm.OpLocalGet, uint(0), wasm.OpI32Const, 1, wasm.Op(0x6b), wasm.OpCall, uint(0),
		wasm.OpEnd))
}

// fills fills n bytes m times, in straight code.
func fills(n, m int) []byte {
	var body []byte
	for range m {
		body = code(body, wasm.OpI32Const, 0, wasm.OpI32Const, 7, wasm.OpI32Const, n, wasm.OpMemoryFill, byte(0))
	}
	var b wasmtest.Builder
	b.Memory(uint(n+65535) / 65536)
	b.Export("f", wasm.KindFunc, b.Func(nil, nil, nil, body))
	return b.Bytes()
}

// Whatever a guest does, it is stopped by its fuel, soon, and the counter says so.
func TestFaultsAreStopped(t *testing.T) {
	for _, f := range []struct {
		name   string
		module []byte
		arg    []uint64
		fuel   int64
		limit  time.Duration // of processor time, generous
	}{
		{"endless loop, 2M", endless(), nil, 2e6, 50 * time.Millisecond},
		{"endless loop, 64M", endless(), nil, 64e6, time.Second},
		{"call tree of 2^40 calls", tree(40), nil, 10e6, 200 * time.Millisecond},
		{"recursion without end", recursion(), []uint64{1 << 31}, 60_000, 100 * time.Millisecond},
		{"fill of 32 MiB, 1,000 times", fills(32<<20, 1000), nil, 4e6, 300 * time.Millisecond},
	} {
		t.Run(f.name, func(t *testing.T) {
			var left [2]int64
			for i, interpreter := range []bool{false, true} {
				if interpreter && f.fuel > 10e6 {
					continue
				}
				g := open(t, f.module, policy{}, interpreter)
				start := wasmtest.CPUTime()
				_, after, err := g.call(f.fuel, "f", f.arg...)
				took := wasmtest.CPUTime() - start
				if err == nil || after >= 0 || kind(err) != "wasm error: unreachable" {
					t.Fatalf("interpreter %v: left %d, %v; want out of fuel", interpreter, after, err)
				}
				if took > f.limit && !interpreter {
					t.Errorf("stopped after %v, want %v", took, f.limit)
				}
				t.Logf("interpreter %v: %v, left %d", interpreter, took, after)
				left[i] = after
			}
			if left[1] != 0 && left[0] != left[1] {
				t.Errorf("the compiler leaves %d, the interpreter %d", left[0], left[1])
			}
		})
	}
}

// Each guard holds back what it is there for: with it off, a run far beyond its fuel ends
// as if nothing had been used.
func TestGuardsAreNeeded(t *testing.T) {
	const fuel = 10_000
	for _, f := range []struct {
		name   string
		module []byte
		arg    []uint64
		off    policy
	}{
		{"loops", countdown(), []uint64{1e6}, policy{freeLoops: true}},
		{"calls", tree(18), nil, policy{freeCalls: true}},
		{"recursion", recursion(), []uint64{500}, policy{freeCalls: true}},
		{"bulk", fills(1<<20, 100), nil, policy{freeBulk: true}},
		{"pieces", pieces(200), []uint64{50}, policy{freePieces: true}},
	} {
		t.Run(f.name, func(t *testing.T) {
			if _, left, err := open(t, f.module, policy{}, false).call(fuel, "f", f.arg...); err == nil || left >= 0 {
				t.Errorf("left %d, %v; want out of fuel", left, err)
			}
			if _, left, err := open(t, f.module, f.off, false).call(fuel, "f", f.arg...); err != nil || left < 0 {
				t.Errorf("left %d, %v without the guard; want it to run through", left, err)
			}
		})
	}
}

// pieces loops over a long piece of code behind an if that is always taken.
func pieces(n int) []byte {
	body := code(wasm.OpLoop, void, wasm.OpLocalGet, uint(0), wasm.OpIf, void)
	for range n {
		body = code(body, wasm.OpNop)
	}
	body = code(body, wasm.OpEnd,
		wasm.OpLocalGet, uint(0), wasm.OpI32Const, 1, wasm.Op(0x6b), wasm.OpLocalTee, uint(0),
		wasm.OpBrIf, uint(0), wasm.OpEnd)
	return function(i32s, nil, nil, body)
}
