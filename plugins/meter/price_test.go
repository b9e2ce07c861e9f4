package meter

import (
	"testing"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// A hog is a loop that makes one instruction as dear as it can be: each one waits for
// the one before.
type hog struct {
	name string
	// body takes a value of type t off the stack and leaves one.
	t    wasm.ValType
	init []byte
	body []byte
	n    int
}

func hogs() []hog {
	i64 := func(n int) []byte { return code(wasm.OpI64Const, n) }
	i32 := func(n int) []byte { return code(wasm.OpI32Const, n) }
	f64one := code(wasm.OpF64Const, []byte{1, 0, 0, 0, 0, 0, 0xf0, 0x3f})
	f32one := code(wasm.OpF32Const, []byte{1, 0, 0x80, 0x3f})
	tiny := code(wasm.OpF64Const, []byte{1, 0, 0, 0, 0, 0, 0x08, 0x00})
	v := code(wasm.OpV128Const, []byte{1, 0, 0, 0, 0, 0, 0xf0, 0x3f, 1, 0, 0, 0, 0, 0, 0xf0, 0x3f})
	op := func(b ...any) []byte { return code(b...) }
	vec := func(n int) []byte { return op(v, wasm.Op(0xfd00+n)) }
	vec1 := func(n int) []byte { return op(wasm.Op(0xfd00 + n)) }
	return []hog{
		{"nop", wasm.I64, i64(1), op(wasm.OpNop), 64},
		{"empty loop", wasm.I64, i64(1), nil, 0},
		{"i64.add", wasm.I64, i64(1), op(i64(3), wasm.Op(0x7c)), 64},
		{"i64.mul", wasm.I64, i64(1), op(i64(3), wasm.Op(0x7e)), 64},
		{"i64.div_s", wasm.I64, i64(1 << 62), op(i64(1<<62), wasm.Op(0x84), i64(1), wasm.Op(0x7f)), 64},
		{"i64.rem_u", wasm.I64, i64(1 << 62), op(i64(1<<62), wasm.Op(0x84), i64(12345), wasm.Op(0x82)), 64},
		{"i32.div_u", wasm.I32, i32(1 << 30), op(i32(1<<30), wasm.Op(0x72), i32(1), wasm.Op(0x6e)), 64},
		{"i64.popcnt", wasm.I64, i64(77), op(wasm.Op(0x7b)), 64},
		{"f64.add", wasm.F64, f64one, op(f64one, wasm.Op(0xa0)), 64},
		{"f64.div", wasm.F64, f64one, op(f64one, wasm.Op(0xa3)), 64},
		{"f32.div", wasm.F32, f32one, op(f32one, wasm.Op(0x95)), 64},
		{"f64.sqrt", wasm.F64, f64one, op(wasm.Op(0x9f)), 64},
		{"f32.sqrt", wasm.F32, f32one, op(wasm.Op(0x91)), 64},
		{"f64.min", wasm.F64, f64one, op(f64one, wasm.Op(0xa4)), 64},
		{"f64.nearest", wasm.F64, f64one, op(wasm.Op(0x9e)), 64},
		{"f64.copysign", wasm.F64, f64one, op(f64one, wasm.Op(0xa6)), 64},
		{"f64.mul subnormal", wasm.F64, tiny, op(f64one, wasm.Op(0xa2)), 64},
		{"f64 to u64 and back", wasm.F64, f64one, op(wasm.Op(0xb1), wasm.Op(0xba)), 64},
		{"f64 to sat u64 and back", wasm.F64, f64one, op(wasm.Op(0xfc07), wasm.Op(0xba)), 64},
		{"f64 to sat i32 and back", wasm.F64, f64one, op(wasm.Op(0xfc02), wasm.Op(0xb7)), 64},
		{"i8x16.swizzle", wasm.V128, v, vec(14), 64},
		{"i8x16.shuffle", wasm.V128, v, op(v, wasm.OpShuffle, []byte{0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31}), 64},
		{"i8x16.popcnt", wasm.V128, v, vec1(98), 64},
		{"i8x16.shl", wasm.V128, v, op(i32(3), wasm.Op(0xfd00+107)), 64},
		{"i8x16.shr_s", wasm.V128, v, op(i32(3), wasm.Op(0xfd00+108)), 64},
		{"i64x2.mul", wasm.V128, v, vec(213), 64},
		{"i64x2.shr_s", wasm.V128, v, op(i32(3), wasm.Op(0xfd00+204)), 64},
		{"i64x2.abs", wasm.V128, v, vec1(192), 64},
		{"i64x2.extmul_high_u", wasm.V128, v, vec(223), 64},
		{"i32x4.dot", wasm.V128, v, vec(186), 64},
		{"q15mulr", wasm.V128, v, vec(130), 64},
		{"f64x2.div", wasm.V128, v, vec(243), 64},
		{"f64x2.sqrt", wasm.V128, v, vec1(239), 64},
		{"f32x4.sqrt", wasm.V128, v, vec1(227), 64},
		{"f32x4.div", wasm.V128, v, vec(231), 64},
		{"f32x4.min", wasm.V128, v, vec(232), 64},
		{"f64x2.nearest", wasm.V128, v, vec1(148), 64},
		{"i32x4.trunc_sat_f32x4_u", wasm.V128, v, vec1(249), 64},
		{"i32x4.trunc_sat_f64x2_u_zero", wasm.V128, v, vec1(253), 64},
		{"f32x4.convert_i32x4_u", wasm.V128, v, vec1(251), 64},
		{"i8x16.bitmask and splat", wasm.V128, v, op(wasm.Op(0xfd00+100), wasm.Op(0xfd00+15)), 64},
		{"all_true and splat", wasm.V128, v, op(wasm.Op(0xfd00+99), wasm.Op(0xfd00+15)), 64},
		{"replace_lane", wasm.V128, v, op(i32(3), wasm.Op(0xfd00+23), byte(3)), 64},
		{"extract and splat", wasm.V128, v, op(wasm.Op(0xfd00+21), byte(3), wasm.Op(0xfd00+15)), 64},
		{"store and load", wasm.I32, i32(0), op(wasm.OpI32Const, 0, wasm.Op(0x28), uint(2), uint(0), wasm.Op(0x6a), wasm.OpLocalSet, uint(1), i32(0), wasm.OpLocalGet, uint(1), wasm.Op(0x36), uint(2), uint(0), wasm.OpLocalGet, uint(1)), 64},
		{"load, dependent, near", wasm.I32, i32(0), op(wasm.Op(0x28), uint(2), uint(0)), 64},
		{"load, dependent, far", wasm.I32, i32(4), op(wasm.Op(0x28), uint(2), uint(0)), 64},
		{"load, unaligned, far", wasm.V128, v, op(wasm.Op(0xfd00+27), byte(0), wasm.OpI32Const, 0xffffc0, wasm.Op(0x71), wasm.Op(0xfd00), uint(0), uint(60)), 64},
		{"memory.size", wasm.I32, i32(0), op(wasm.OpDrop, wasm.OpMemorySize, byte(0)), 64},
		{"memory.grow 0", wasm.I32, i32(0), op(wasm.OpDrop, i32(0), wasm.OpMemoryGrow, byte(0)), 64},
		{"memory.fill 0", wasm.I32, i32(0), op(i32(0), i32(0), i32(0), wasm.OpMemoryFill, byte(0)), 64},
		{"memory.fill 15", wasm.I32, i32(0), op(i32(1<<23), i32(0), i32(15), wasm.OpMemoryFill, byte(0)), 64},
		{"memory.fill 1 MiB", wasm.I32, i32(0), op(i32(1<<23), i32(0), i32(1<<20), wasm.OpMemoryFill, byte(0)), 4},
		{"memory.copy 15", wasm.I32, i32(0), op(i32(1<<23), i32(1<<23), i32(15), wasm.OpMemoryCopy, byte(0), byte(0)), 64},
		{"memory.copy 1 MiB", wasm.I32, i32(0), op(i32(9<<20), i32(1<<23), i32(1<<20), wasm.OpMemoryCopy, byte(0), byte(0)), 4},
		{"memory.init 15", wasm.I32, i32(0), op(i32(1<<23), i32(0), i32(15), wasm.OpMemoryInit, uint(0), byte(0)), 64},
		{"data.drop", wasm.I32, i32(0), op(wasm.OpDataDrop, uint(1)), 64},
		{"call", wasm.I32, i32(0), op(wasm.OpCall, uint(0)), 64},
		{"call_indirect", wasm.I32, i32(0), op(i32(0), wasm.OpCallIndirect, uint(0), uint(0)), 64},
		{"table.get", wasm.I32, i32(0), op(i32(0), wasm.OpTableGet, uint(0), wasm.OpDrop), 64},
		{"ref.func", wasm.I32, i32(0), op(wasm.OpRefFunc, uint(0), wasm.OpDrop), 64},
		{"global.get and set", wasm.I32, i32(0), op(wasm.OpGlobalSet, uint(0), wasm.OpGlobalGet, uint(0)), 64},
		{"select", wasm.I32, i32(1), op(i32(5), wasm.OpLocalGet, uint(1), wasm.OpSelect), 64},
		{"br_table", wasm.I32, i32(1), op(wasm.OpLocalSet, uint(1), wasm.OpBlock, void, wasm.OpBlock, void, wasm.OpLocalGet, uint(1), wasm.OpBrTable, uint(1), uint(0), uint(1), wasm.OpEnd, wasm.OpEnd, wasm.OpLocalGet, uint(1), i32(1), wasm.Op(0x73)), 64},
	}
}

// module makes a module whose export "f" runs the hog as often as its parameter says,
// with 16 MiB of memory that holds a random cycle of addresses.
func (h hog) module() []byte {
	var b wasmtest.Builder
	b.Memory(256)
	b.Table(8)
	b.Element(code(byte(0), wasm.OpI32Const, 0, wasm.OpEnd, uint(1), uint(0)))
	b.Global(wasm.I32, true, code(wasm.OpI32Const, 0))
	callee := b.Func(i32s, i32s, nil, code(wasm.OpLocalGet, uint(0)))
	_ = callee
	b.Raw(wasm.SectionDataCount, code(uint(2)))
	b.Data(code(byte(1), string(make([]byte, 64))))
	b.Data(code(byte(1), ""))
	body := h.init
	body = code(body, wasm.OpLocalSet, uint(2), wasm.OpLoop, void, wasm.OpLocalGet, uint(2))
	for range h.n {
		body = code(body, h.body)
	}
	body = code(body, wasm.OpLocalSet, uint(2),
		wasm.OpLocalGet, uint(0), wasm.OpI32Const, 1, wasm.Op(0x6b), wasm.OpLocalTee, uint(0),
		wasm.OpBrIf, uint(0), wasm.OpEnd)
	b.Export("f", wasm.KindFunc, b.Func(i32s, nil, []wasm.ValType{wasm.I32, h.t}, body))
	return b.Bytes()
}

// scatter writes a cycle through all of the memory's lines of 64 bytes, in an order that
// no prefetcher follows, from address 4 on; address 0 stays 0.
func scatter(memory []byte) {
	lines := len(memory) / 64
	at := 0
	for range lines {
		next := (at*5 + 12345) % lines // full period: lines is a power of two
		to := uint32(next*64 + 4)
		for i := range 4 {
			memory[at*64+4+i] = byte(to >> (8 * i))
		}
		at = next
	}
}

// BenchmarkPrice tells what a unit of fuel can cost at worst, in the compiler.
func BenchmarkPrice(b *testing.B) {
	for _, h := range hogs() {
		b.Run(h.name, func(b *testing.B) {
			g := open(b, h.module(), policy{}, false)
			memory, _ := g.m.Memory().Read(0, 256<<16)
			scatter(memory)
			const fuel = 2_000_000
			for b.Loop() {
				if _, left, err := g.call(fuel, "f", 1<<31); err == nil || left >= 0 {
					b.Fatalf("left %d, %v", left, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/fuel, "ns/fuel")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/2M")
		})
	}
}
