package wasmtest

import (
	"bytes"
	"slices"

	"ganglion/plugins/wasm"
)

// A Bomb is a module that costs some reader dearly: in time that grows faster than the file,
// in stack, or in memory for what the file only claims.
type Bomb struct {
	Name string
	File []byte
	// Harmless: the limits of plugins have made it small, and it passes them.
	Harmless bool
}

// Bombs returns them. Those that pass the limits are plugins but for their manifest.
func Bombs() []Bomb {
	const void, big = byte(0x40), 16<<20 - 4000 // a manifest fits behind it
	code := Code
	repeat := func(n int, parts ...any) []byte { return bytes.Repeat(Code(parts...), n) }
	make32 := func(n int) []wasm.ValType { return slices.Repeat([]wasm.ValType{wasm.I32}, n) }
	one := func(code []byte) func(*Builder) {
		return func(b *Builder) { b.Func(nil, nil, nil, code) }
	}
	many := func(n int, code []byte) func(*Builder) {
		return func(b *Builder) {
			index := b.Type(nil, nil)
			for range n {
				b.FuncRaw(index, append(append([]byte{0}, code...), byte(wasm.OpEnd)))
			}
		}
	}
	locals := func(runs, count int) func(*Builder) {
		return func(b *Builder) {
			b.FuncRaw(b.Type(nil, nil), code(uint(runs), repeat(runs, uint(count), wasm.I32), wasm.OpEnd))
		}
	}
	section := func(id wasm.SectionID, content []byte) []byte {
		return wasm.AppendSection([]byte("\x00asm\x01\x00\x00\x00"), id, content)
	}
	return []Bomb{
		{Name: "nesting of 5 million blocks", File: bombBase(one(repeat(big/3, wasm.OpBlock, void)))},
		{Harmless: true, Name: "nesting in functions below every limit", File: bombBase(many(6, code(repeat(3999, wasm.OpBlock, void), repeat(3999, wasm.OpEnd))))},
		{Name: "5 million ifs", File: bombBase(one(repeat(big/5, wasm.OpI32Const, 0, wasm.OpIf, void, wasm.OpEnd)))},
		{Harmless: true, Name: "straight code of 16 MiB", File: bombBase(many(63, repeat(262000, wasm.OpNop)))},
		{Harmless: true, Name: "straight code of two bytes each", File: bombBase(func(b *Builder) {
			for range 63 {
				b.Func(nil, nil, make32(1), repeat(262000/4, wasm.OpLocalGet, uint(0), wasm.OpLocalSet, uint(0)))
			}
		})},
		{Harmless: true, Name: "straight vector code", File: bombBase(func(b *Builder) {
			v := wasm.OpV128Const
			for range 63 {
				b.Func(nil, nil, nil, code(v, make([]byte, 16), repeat(262000/2-50, wasm.Op(0xfd4d)), wasm.OpDrop))
			}
		})},
		{Name: "5 million elements as expressions", File: bombBase(func(b *Builder) {
			b.Element(code(uint(5), wasm.FuncRef, uint(big/3), repeat(big/3, wasm.OpRefNull, wasm.FuncRef, wasm.OpEnd)))
		})},
		{Name: "br_table of 16 million", File: bombBase(one(code(wasm.OpI32Const, 0, wasm.OpBrTable, uint(big-8), repeat(big-7, uint(0)))))},
		{Name: "br_table that claims 4 billion", File: bombBase(one(code(wasm.OpI32Const, 0, wasm.OpBrTable, uint(1<<32-1))))},
		{Name: "4 billion locals in 6 bytes", File: bombBase(locals(1, 1<<32-1))},
		{Name: "2^45 locals", File: bombBase(locals(10000, 1<<32-1))},
		{Name: "locals one by one", File: bombBase(locals(5_000_000, 1))},
		{Name: "types of 1,000 parameters", File: section(wasm.SectionType, code(uint(16000), repeat(16000, byte(0x60), uint(1000), repeat(1000, wasm.I32), uint(0))))},
		{Name: "5 million types", File: section(wasm.SectionType, code(uint(big/3), repeat(big/3, byte(0x60), uint(0), uint(0))))},
		{Name: "4 billion types claimed", File: section(wasm.SectionType, code(uint(1<<32-1)))},
		{Name: "4 billion exports claimed", File: section(wasm.SectionExport, code(uint(1<<32-1)))},
		{Name: "16 million functions", File: section(wasm.SectionFunction, code(uint(big), make([]byte, big)))},
		{Name: "5 million exports", File: bombBase(func(b *Builder) {
			b.Raw(wasm.SectionExport, code(uint(big/4), repeat(big/4, "", byte(0), uint(0))))
		})},
		{Name: "one table of 16 million elements", File: bombBase(func(b *Builder) { b.Element(code(uint(1), byte(0), uint(big), make([]byte, big))) })},
		{Name: "5 million empty custom sections", File: append(bombBase(nil)[:8], repeat(big/3, byte(0), uint(1), uint(0))...)},
		{Name: "custom section of 100 MiB", File: bombBase(func(b *Builder) { b.Custom("x", make([]byte, 100<<20)) })},
		{Harmless: true, Name: "name section of claims", File: bombBase(func(b *Builder) { b.Custom("name", code(byte(1), uint(6), uint(1<<32-1), byte(0))) })},
		{Name: "memory of 65,536 pages", File: section(wasm.SectionMemory, code(uint(1), byte(0), uint(65536)))},
		{Name: "table of 4 billion", File: section(wasm.SectionTable, code(uint(1), wasm.FuncRef, byte(0), uint(1<<32-1)))},
	}
}

// bombBase returns a module that is a plugin but for its manifest, after a change.
func bombBase(change func(*Builder)) []byte {
	i32 := []wasm.ValType{wasm.I32}
	var b Builder
	b.ImportFunc("ganglion", "log", []wasm.ValType{wasm.I32, wasm.I32, wasm.I32}, i32)
	b.Memory(1)
	b.Table(8)
	b.Export("gg_abi_1", wasm.KindFunc, b.Func(nil, i32, nil, Code(wasm.OpI32Const, 0)))
	b.Export("gg_alloc", wasm.KindFunc, b.Func([]wasm.ValType{wasm.I32, wasm.I32}, i32, nil, Code(wasm.OpI32Const, 1024)))
	if change != nil {
		change(&b)
	}
	return b.Bytes()
}
