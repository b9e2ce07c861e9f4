package wasm_test

import (
	"errors"
	"strings"
	"testing"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

var code = wasmtest.Code

const void = byte(0x40)

// plugin returns a module that passes Check, after a change.
func plugin(change func(*wasmtest.Builder)) []byte {
	var b wasmtest.Builder
	b.ImportFunc("ganglion", "log", []wasm.ValType{wasm.I32, wasm.I32, wasm.I32}, nil)
	b.Memory(1)
	b.Table(8)
	b.Export("gg_abi_1", wasm.KindFunc, b.Func(nil, []wasm.ValType{wasm.I32}, nil, code(wasm.OpI32Const, 0)))
	if change != nil {
		change(&b)
	}
	return b.Bytes()
}

func check(module []byte, l wasm.Limits) error {
	m, err := wasm.Parse(module)
	if err != nil {
		return err
	}
	return wasm.Check(m, l)
}

// repeat joins n copies of what parts make.
func repeat(n int, parts ...any) []byte {
	return []byte(strings.Repeat(string(code(parts...)), n))
}

func body(b *wasmtest.Builder, parts ...any) { b.Func(nil, nil, nil, code(parts...)) }

// Each thing that a plugin may not do or hold is refused, and is what was refused: with
// the limit lifted, or the module changed in that one point, it passes.
func TestCheck(t *testing.T) {
	type limits = wasm.Limits
	i32 := []wasm.ValType{wasm.I32}
	tests := []struct {
		name   string
		change func(*wasmtest.Builder)
		lift   func(*limits)
		says   string
	}{
		{"import from elsewhere", func(b *wasmtest.Builder) { b.ImportFunc("env", "abort", nil, nil) }, func(l *limits) { l.Modules = append(l.Modules, "env") }, `only from ganglion`},
		{"import of wasi", func(b *wasmtest.Builder) { b.ImportFunc("wasi_snapshot_preview1", "fd_write", nil, nil) }, func(l *limits) { l.Modules = append(l.Modules, "wasi_snapshot_preview1") }, `only from ganglion`},
		{"import of a memory", func(b *wasmtest.Builder) { b.Import("ganglion", "m", code(byte(3), wasm.I32, byte(0))) }, nil, "only functions"},
		{"import of a table", func(b *wasmtest.Builder) { b.Import("ganglion", "t", code(byte(1), wasm.FuncRef, byte(0), uint(1))) }, nil, "only functions"},
		{"no memory", func(b *wasmtest.Builder) {
			b.Raw(wasm.SectionMemory, code(uint(0)))
			b.Raw(wasm.SectionExport, code(uint(0)))
		}, nil, "exactly one memory"},
		{"memory under another name", func(b *wasmtest.Builder) { b.Raw(wasm.SectionExport, code(uint(1), "mem", byte(2), uint(0))) }, nil, "exactly one memory"},
		{"memory is a function", func(b *wasmtest.Builder) { b.Raw(wasm.SectionExport, code(uint(1), "memory", byte(0), uint(0))) }, nil, `"memory" is a func`},
		{"reserved export", func(b *wasmtest.Builder) { b.Export("__gg_fuel", wasm.KindFunc, 0) }, nil, "reserved"},
		{"_start", func(b *wasmtest.Builder) { b.Export("_start", wasm.KindFunc, 0) }, nil, "_start"},
		{"data.drop", func(b *wasmtest.Builder) { body(b, wasm.OpDataDrop, uint(0)) }, nil, "data.drop"},
		{"elem.drop", func(b *wasmtest.Builder) { body(b, wasm.OpElemDrop, uint(0)) }, nil, "elem.drop"},
		{"memory.init", func(b *wasmtest.Builder) {
			body(b, wasm.OpI32Const, 1, wasm.OpI32Const, 1, wasm.OpI32Const, 1, wasm.OpMemoryInit, uint(0), uint(0))
		}, nil, "memory.init"},
		{"table.grow", func(b *wasmtest.Builder) {
			body(b, wasm.OpRefNull, wasm.FuncRef, wasm.OpI32Const, 1, wasm.OpTableGrow, uint(0), wasm.OpDrop)
		}, nil, "table.grow"},
		{"table.set", func(b *wasmtest.Builder) {
			body(b, wasm.OpI32Const, 1, wasm.OpRefNull, wasm.FuncRef, wasm.OpTableSet, uint(0))
		}, nil, "table.set"},
		{"table.fill", func(b *wasmtest.Builder) {
			body(b, wasm.OpI32Const, 1, wasm.OpRefNull, wasm.FuncRef, wasm.OpI32Const, 1, wasm.OpTableFill, uint(0))
		}, nil, "table.fill"},
		{"table.copy", func(b *wasmtest.Builder) {
			body(b, wasm.OpI32Const, 1, wasm.OpI32Const, 1, wasm.OpI32Const, 1, wasm.OpTableCopy, uint(0), uint(0))
		}, nil, "table.copy"},
		{"table.init", func(b *wasmtest.Builder) {
			body(b, wasm.OpI32Const, 1, wasm.OpI32Const, 1, wasm.OpI32Const, 1, wasm.OpTableInit, uint(0), uint(0))
		}, nil, "table.init"},
		{"mutable reference", func(b *wasmtest.Builder) { b.Global(wasm.FuncRef, true, code(wasm.OpRefNull, wasm.FuncRef)) }, nil, "cannot be copied"},
		{"mutable vector", func(b *wasmtest.Builder) { b.Global(wasm.V128, true, code(wasm.OpV128Const, make([]byte, 16))) }, nil, "cannot be copied"},
		{"table of 16,385", func(b *wasmtest.Builder) { b.Table(16377) }, func(l *limits) { l.TableEntries++ }, "16385 entries"},
		{"memory of 257 pages", func(b *wasmtest.Builder) { b.Raw(wasm.SectionMemory, code(uint(1), byte(0), uint(257))) }, func(l *limits) { l.MemoryPages++ }, "257 pages"},
		{"4,001 blocks", func(b *wasmtest.Builder) { body(b, repeat(4001, wasm.OpBlock, void, wasm.OpEnd)) }, func(l *limits) { l.ControlOps++ }, "4001 blocks"},
		{"16,000 labels", func(b *wasmtest.Builder) {
			body(b, wasm.OpI32Const, 0, wasm.OpBrTable, uint(16000), repeat(16001, uint(0)))
		}, func(l *limits) { l.ControlOps++ }, "4001 blocks"},
		{"1,001 loops", func(b *wasmtest.Builder) { body(b, repeat(1001, wasm.OpLoop, void, wasm.OpEnd)) }, func(l *limits) { l.ControlOps += 4 }, "4004 blocks"},
		{"squares", func(b *wasmtest.Builder) {
			for range 7 {
				body(b, repeat(3999, wasm.OpI32Const, 0, wasm.OpIf, void, wasm.OpEnd))
			}
		}, func(l *limits) { l.ControlSquares *= 2 }, "squares"},
		{"function of 256 KiB", func(b *wasmtest.Builder) { body(b, repeat(256<<10, wasm.OpNop)) }, func(l *limits) { l.FuncBytes++ }, "262145 bytes"},
		{"1,025 locals", func(b *wasmtest.Builder) {
			b.FuncRaw(b.Type(nil, nil), code(uint(1), uint(1025), wasm.I32, wasm.OpEnd))
		}, func(l *limits) { l.Locals++ }, "1025 locals"},
		{"locals of all functions", func(b *wasmtest.Builder) {
			for range 1025 {
				b.FuncRaw(b.Type(nil, nil), code(uint(1), uint(1024), wasm.V128, wasm.OpEnd))
			}
		}, func(l *limits) { l.LocalsSum *= 2 }, "locals"},
		{"129 parameters", func(b *wasmtest.Builder) { b.Type(make32(129), nil) }, func(l *limits) { l.Params++ }, "129 parameters"},
		{"17 results", func(b *wasmtest.Builder) { b.Type(nil, make32(17)) }, func(l *limits) { l.Results++ }, "17 results"},
		{"4,097 types", func(b *wasmtest.Builder) {
			b.Raw(wasm.SectionType, code(uint(4097), repeat(4097, byte(0x60), byte(0), byte(0))))
		}, func(l *limits) { l.Types++ }, "4097 types"},
		{"257 imports", func(b *wasmtest.Builder) {
			for range 256 {
				b.ImportFunc("ganglion", "log", i32, nil)
			}
		}, func(l *limits) { l.Imports++ }, "257 imports"},
		{"1,025 exports", func(b *wasmtest.Builder) {
			for i := range 1023 {
				b.Export(strings.Repeat("x", i), wasm.KindFunc, 0)
			}
		}, func(l *limits) { l.Exports++ }, "1025 exports"},
		{"1,025 globals", func(b *wasmtest.Builder) {
			for range 1025 {
				b.Global(wasm.I32, true, code(wasm.OpI32Const, 0))
			}
		}, func(l *limits) { l.Globals++ }, "1025 globals"},
		{"5 tables", func(b *wasmtest.Builder) {
			for range 4 {
				b.Table(1)
			}
		}, func(l *limits) { l.Tables++ }, "5 tables"},
		{"65,537 segments", func(b *wasmtest.Builder) { b.Raw(wasm.SectionData, code(uint(65537), repeat(65537, byte(1), ""))) }, func(l *limits) { l.Segments++ }, "65537 segments"},
		{"65,537 elements", func(b *wasmtest.Builder) { b.Element(code(uint(1), byte(0), uint(65537), make([]byte, 65537))) }, func(l *limits) { l.Elements++ }, "65537 elements"},
		{"65,537 functions", func(b *wasmtest.Builder) {
			b.Raw(wasm.SectionFunction, code(uint(65537), repeat(65537, uint(0))))
			b.Raw(wasm.SectionCode, code(uint(65537), repeat(65537, uint(3), byte(0), wasm.OpUnreachable, wasm.OpEnd)))
		}, func(l *limits) { l.Funcs++ }, "65537 functions"},
		{"257 custom sections", func(b *wasmtest.Builder) {
			for range 257 {
				b.Custom("x", nil)
			}
		}, func(l *limits) { l.Customs++ }, "257"},
		{"custom section of 8 MiB", func(b *wasmtest.Builder) { b.Custom("x", make([]byte, 8<<20)) }, func(l *limits) { l.CustomBytes += 100 }, "bytes, at most 8388608"},
		{"file of 16 MiB", func(b *wasmtest.Builder) { b.Custom("x", make([]byte, 16<<20)) }, func(l *limits) { l.FileBytes += 1000; l.CustomBytes *= 3 }, "at most 16777216"},
	}
	if err := check(plugin(nil), wasm.PluginLimits()); err != nil {
		t.Fatalf("a plain plugin: %v", err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			module := plugin(tt.change)
			err := check(module, wasm.PluginLimits())
			if !errors.Is(err, wasm.ErrLimit) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want a refusal that says %q", err, tt.says)
			}
			if tt.lift == nil {
				return
			}
			l := wasm.PluginLimits()
			tt.lift(&l)
			if err := check(module, l); err != nil {
				t.Errorf("with the limit lifted: %v", err)
			}
		})
	}
}

func make32(n int) []wasm.ValType {
	t := make([]wasm.ValType, n)
	for i := range t {
		t[i] = wasm.I32
	}
	return t
}

// What lies outside WebAssembly 2.0 is refused by its name.
func TestFeatures(t *testing.T) {
	for _, tt := range []struct {
		says   string
		change func(*wasmtest.Builder)
	}{
		{"tail calls", func(b *wasmtest.Builder) { body(b, byte(0x12), uint(0)) }},
		{"threads", func(b *wasmtest.Builder) { body(b, byte(0xfe), byte(3), byte(0)) }},
		{"threads: shared memory", func(b *wasmtest.Builder) { b.Raw(wasm.SectionMemory, code(uint(1), byte(3), uint(1), uint(1))) }},
		{"exception handling", func(b *wasmtest.Builder) { body(b, byte(0x06), void, wasm.OpEnd) }},
		{"exception handling: tag section", func(b *wasmtest.Builder) { b.Raw(wasm.SectionCode, nil) }},
		{"relaxed SIMD", func(b *wasmtest.Builder) { body(b, byte(0xfd), uint(0x100)) }},
		{"64-bit memory", func(b *wasmtest.Builder) { b.Raw(wasm.SectionMemory, code(uint(1), byte(4), uint(1))) }},
		{"several memories", func(b *wasmtest.Builder) {
			b.Raw(wasm.SectionMemory, code(uint(2), byte(0), uint(1), byte(0), uint(1)))
		}},
		{"several memories", func(b *wasmtest.Builder) { body(b, wasm.OpMemorySize, byte(1), wasm.OpDrop) }},
		{"several memories", func(b *wasmtest.Builder) {
			body(b, wasm.OpI32Const, 0, wasm.Op(0x28), uint(0x42), uint(1), uint(0), wasm.OpDrop)
		}},
		{"extended constant expressions", func(b *wasmtest.Builder) {
			b.Global(wasm.I32, false, code(wasm.OpI32Const, 1, wasm.OpI32Const, 1, wasm.Op(0x6a)))
		}},
		{"garbage collection", func(b *wasmtest.Builder) {
			b.Raw(wasm.SectionType, code(uint(1), byte(0x5f), uint(1), wasm.I32, byte(0)))
		}},
		{"garbage collection", func(b *wasmtest.Builder) { body(b, byte(0xfb), uint(1)) }},
		{"typed function references", func(b *wasmtest.Builder) { body(b, byte(0x14), uint(0)) }},
		{"custom page sizes", func(b *wasmtest.Builder) { b.Raw(wasm.SectionMemory, code(uint(1), byte(8), uint(1), uint(0))) }},
	} {
		module := plugin(tt.change)
		if strings.HasSuffix(tt.says, "tag section") {
			module = append(module, 13, 1, 0)
		}
		if err := check(module, wasm.PluginLimits()); !errors.Is(err, wasm.ErrUnsupported) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v, want a refusal that says %q", err, tt.says)
		}
	}
}
