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

const big = 16<<20 - 1000

// bombs are files that cost some reader dearly: in time that grows faster than the file,
// in stack, or in memory for what the file only claims.
func bombs() []struct {
	name string
	file []byte
} {
	one := func(code []byte) func(*wasmtest.Builder) {
		return func(b *wasmtest.Builder) { b.Func(nil, nil, nil, code) }
	}
	many := func(n int, code []byte) func(*wasmtest.Builder) {
		return func(b *wasmtest.Builder) {
			index := b.Type(nil, nil)
			for range n {
				b.FuncRaw(index, append(append([]byte{0}, code...), byte(wasm.OpEnd)))
			}
		}
	}
	locals := func(runs, count int) func(*wasmtest.Builder) {
		return func(b *wasmtest.Builder) {
			b.FuncRaw(b.Type(nil, nil), code(uint(runs), repeat(runs, uint(count), wasm.I32), wasm.OpEnd))
		}
	}
	section := func(id wasm.SectionID, content []byte) []byte {
		return wasm.AppendSection([]byte("\x00asm\x01\x00\x00\x00"), id, content)
	}
	return []struct {
		name string
		file []byte
	}{
		{"nesting of 5 million blocks", plugin(one(repeat(big/3, wasm.OpBlock, void)))},
		{"nesting in functions below every limit", plugin(many(6, code(repeat(3999, wasm.OpBlock, void), repeat(3999, wasm.OpEnd))))},
		{"5 million ifs", plugin(one(repeat(big/5, wasm.OpI32Const, 0, wasm.OpIf, void, wasm.OpEnd)))},
		{"straight code of 16 MiB", plugin(many(63, repeat(262000, wasm.OpNop)))},
		{"straight code of two bytes each", plugin(func(b *wasmtest.Builder) {
			for range 63 {
				b.Func(nil, nil, make32(1), repeat(262000/4, wasm.OpLocalGet, uint(0), wasm.OpLocalSet, uint(0)))
			}
		})},
		{"straight vector code", plugin(func(b *wasmtest.Builder) {
			v := wasm.OpV128Const
			for range 63 {
				b.Func(nil, nil, nil, code(v, make([]byte, 16), repeat(262000/2-50, wasm.Op(0xfd4d)), wasm.OpDrop))
			}
		})},
		{"5 million elements as expressions", plugin(func(b *wasmtest.Builder) {
			b.Element(code(uint(5), wasm.FuncRef, uint(big/3), repeat(big/3, wasm.OpRefNull, wasm.FuncRef, wasm.OpEnd)))
		})},
		{"br_table of 16 million", plugin(one(code(wasm.OpI32Const, 0, wasm.OpBrTable, uint(big-8), repeat(big-7, uint(0)))))},
		{"br_table that claims 4 billion", plugin(one(code(wasm.OpI32Const, 0, wasm.OpBrTable, uint(1<<32-1))))},
		{"4 billion locals in 6 bytes", plugin(locals(1, 1<<32-1))},
		{"2^45 locals", plugin(locals(10000, 1<<32-1))},
		{"locals one by one", plugin(locals(5_000_000, 1))},
		{"types of 1,000 parameters", section(wasm.SectionType, code(uint(16000), repeat(16000, byte(0x60), uint(1000), repeat(1000, wasm.I32), uint(0))))},
		{"5 million types", section(wasm.SectionType, code(uint(big/3), repeat(big/3, byte(0x60), uint(0), uint(0))))},
		{"4 billion types claimed", section(wasm.SectionType, code(uint(1<<32-1)))},
		{"4 billion exports claimed", section(wasm.SectionExport, code(uint(1<<32-1)))},
		{"16 million functions", section(wasm.SectionFunction, code(uint(big), make([]byte, big)))},
		{"5 million exports", plugin(func(b *wasmtest.Builder) {
			b.Raw(wasm.SectionExport, code(uint(big/4), repeat(big/4, "", byte(0), uint(0))))
		})},
		{"one table of 16 million elements", plugin(func(b *wasmtest.Builder) { b.Element(code(uint(1), byte(0), uint(big), make([]byte, big))) })},
		{"8 million empty custom sections", plugin(nil)[:8]},
		{"custom section of 100 MiB", plugin(func(b *wasmtest.Builder) { b.Custom("x", make([]byte, 100<<20)) })},
		{"name section of claims", plugin(func(b *wasmtest.Builder) { b.Custom("name", code(byte(1), uint(6), uint(1<<32-1), byte(0))) })},
		{"memory of 65,536 pages", section(wasm.SectionMemory, code(uint(1), byte(0), uint(65536)))},
		{"table of 4 billion", section(wasm.SectionTable, code(uint(1), wasm.FuncRef, byte(0), uint(1<<32-1)))},
	}
}

// harmless are the bombs that the limits have made small.
var harmless = map[string]bool{
	"nesting in functions below every limit": true, "straight code of 16 MiB": true,
	"straight code of two bytes each": true, "straight vector code": true, "name section of claims": true,
}

// TestBombs decides every bomb within 100 ms and a few times its own size of memory.
func TestBombs(t *testing.T) {
	for _, b := range bombs() {
		if b.name == "8 million empty custom sections" {
			b.file = append(b.file, repeat(big/3, byte(0), uint(1), uint(0))...)
		}
		t.Run(b.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			took := time.Duration(1 << 62)
			var err error
			for range 3 { // the garbage collector may be busy
				start := wasmtest.CPUTime()
				err = decide(b.file)
				took = min(took, wasmtest.CPUTime()-start)
				if took < 100*time.Millisecond {
					break
				}
			}
			runtime.ReadMemStats(&after)
			t.Logf("%d bytes: %v: %v", len(b.file), took, err)
			if took > limit100 {
				t.Errorf("decided after %v", took)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 5*64<<20 {
				t.Errorf("%d MiB of memory", used>>20)
			}
			if err == nil && !harmless[b.name] {
				t.Error("accepted")
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
