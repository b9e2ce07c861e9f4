package wasmtest

import (
	"fmt"

	"ganglion/plugins/wasm"
)

// Builder puts a module together from parts. It checks nothing: it can build modules
// that are wrong.
type Builder struct {
	items  [13][][]byte // by section
	raw    [13][]byte
	custom []byte
	funcs  int
	types  map[string]uint
}

// add appends an item to a section and returns its index there.
func (b *Builder) add(id wasm.SectionID, item []byte) uint {
	b.items[id] = append(b.items[id], item)
	return uint(len(b.items[id]) - 1)
}

// Type returns the index of a function type, adding it if it is new.
func (b *Builder) Type(params, results []wasm.ValType) uint {
	item := Code(byte(0x60), uint(len(params)), params, uint(len(results)), results)
	if i, ok := b.types[string(item)]; ok {
		return i
	}
	if b.types == nil {
		b.types = map[string]uint{}
	}
	i := b.add(wasm.SectionType, item)
	b.types[string(item)] = i
	return i
}

// Import adds an import; description is the bytes from the kind on. Functions must be
// imported before the first Func.
func (b *Builder) Import(module, name string, description []byte) uint {
	if wasm.Kind(description[0]) == wasm.KindFunc {
		b.funcs++
	}
	return b.add(wasm.SectionImport, Code(module, name, description))
}

// ImportFunc imports a function and returns its index.
func (b *Builder) ImportFunc(module, name string, params, results []wasm.ValType) uint {
	b.Import(module, name, Code(byte(0), b.Type(params, results)))
	return uint(b.funcs - 1)
}

// Func adds a function with its locals, each declared on its own, and its code, to which
// the end is added. It returns its index.
func (b *Builder) Func(params, results, locals []wasm.ValType, code []byte) uint {
	body := Code(uint(len(locals)))
	for _, t := range locals {
		body = Code(body, uint(1), t)
	}
	return b.FuncRaw(b.Type(params, results), Code(body, code, wasm.OpEnd))
}

// FuncRaw adds a function of a type with a body as it stands in the file, without its
// size.
func (b *Builder) FuncRaw(index uint, body []byte) uint {
	b.add(wasm.SectionFunction, Code(index))
	b.add(wasm.SectionCode, Code(uint(len(body)), body))
	b.funcs++
	return uint(b.funcs - 1)
}

// Table adds a table of functions.
func (b *Builder) Table(size uint) uint {
	return b.add(wasm.SectionTable, Code(wasm.FuncRef, byte(0), size))
}

// Memory adds a memory without a maximum and exports it as "memory".
func (b *Builder) Memory(pages uint) {
	b.Export("memory", wasm.KindMemory, b.add(wasm.SectionMemory, Code(byte(0), pages)))
}

// Global adds a global; init is its constant expression without the end.
func (b *Builder) Global(t wasm.ValType, mutable bool, init []byte) uint {
	m := byte(0)
	if mutable {
		m = 1
	}
	return b.add(wasm.SectionGlobal, Code(t, m, init, wasm.OpEnd))
}

// Export adds an export.
func (b *Builder) Export(name string, kind wasm.Kind, index uint) {
	b.add(wasm.SectionExport, Code(name, byte(kind), index))
}

// Element adds an element segment as it stands in the file.
func (b *Builder) Element(segment []byte) uint { return b.add(wasm.SectionElement, segment) }

// Data adds a data segment as it stands in the file.
func (b *Builder) Data(segment []byte) uint { return b.add(wasm.SectionData, segment) }

// Raw sets the content of a section, in place of its items.
func (b *Builder) Raw(id wasm.SectionID, content []byte) { b.raw[id] = content }

// Custom adds a custom section at the end of the module.
func (b *Builder) Custom(name string, content []byte) {
	b.custom = wasm.AppendSection(b.custom, wasm.SectionCustom, Code(name, content))
}

// Bytes returns the module.
func (b *Builder) Bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, id := range [...]wasm.SectionID{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11} {
		if content := b.raw[id]; content != nil {
			out = wasm.AppendSection(out, id, content)
		} else if items := b.items[id]; len(items) > 0 {
			content := Code(uint(len(items)))
			for _, item := range items {
				content = append(content, item...)
			}
			out = wasm.AppendSection(out, id, content)
		}
	}
	return append(out, b.custom...)
}

// Code joins parts into bytes: instructions; int as signed and uint as unsigned LEB128;
// strings with their length; types, bytes and lists of them as they are.
func Code(parts ...any) (out []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case wasm.Op:
			if p > 0xff {
				out = wasm.AppendUint(append(out, byte(p>>8)), uint64(p&0xff))
			} else {
				out = append(out, byte(p))
			}
		case int:
			out = wasm.AppendInt(out, int64(p))
		case uint:
			out = wasm.AppendUint(out, uint64(p))
		case byte:
			out = append(out, p)
		case []byte:
			out = append(out, p...)
		case wasm.ValType:
			out = append(out, byte(p))
		case []wasm.ValType:
			for _, t := range p {
				out = append(out, byte(t))
			}
		case string:
			out = wasm.AppendName(out, p)
		default:
			panic(fmt.Sprintf("wasmtest: Code of %T", p))
		}
	}
	return out
}
