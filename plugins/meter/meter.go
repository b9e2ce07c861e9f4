package meter

import (
	"fmt"
	"strconv"
	"strings"

	"ganglion/plugins/wasm"
)

// Names of what the rewriter exports.
const (
	Fuel   = wasm.ReservedPrefix + "fuel"  // the counter: mutable i64
	Rest   = wasm.ReservedPrefix + "rest"  // what the counter gets when it is empty: mutable i64
	Start  = wasm.ReservedPrefix + "start" // the start function, if there was one
	global = wasm.ReservedPrefix + "g"     // and the index of a global
)

// Breath is the most fuel that a guest burns before it lets in who waits for its thread.
// A chain of loads that miss all caches takes up to 50 ns for each unit, 0.8 ms in all;
// going to the host and back takes 0.1 µs.
const Breath = 1 << 14

// Info says what a rewritten module exports beyond the original.
type Info struct {
	// Globals are the mutable globals that the module defines, in the order of their
	// indices: the part of an instance's state outside its memory. Globals that are not
	// numbers are not among them (wasm.Check refuses those).
	Globals []Global
	// HasStart: the module had a start function. The host calls Start after it has set
	// the fuel and before it calls anything else.
	HasStart bool
	Charges  int // places where fuel is taken
}

// Global is a mutable global that the rewriter exports.
type Global struct {
	Name string // of the export
	Type wasm.ValType
}

// Rewrite returns a module that does what the given one does and pays for it. It
// validates the given module first and refuses an invalid one. It runs nothing, and its
// time and memory are linear in the module.
func Rewrite(module []byte) ([]byte, Info, error) {
	return rewrite(module, policy{})
}

// A policy switches guards off. Tests use it to show what each guard holds back; the
// zero value has all of them on.
type policy struct {
	trustInput bool // do not validate
	freeLoops  bool // no charge at the head of a loop
	freeCalls  bool // no charge at the entry of a function
	freeBulk   bool // no charge of bulk instructions
	freePieces bool // no charge of pieces behind the first of a region
	separate   bool // each piece is charged where it stands
	breathless bool // nobody is let in when the counter is refilled
}

func rewrite(module []byte, p policy) ([]byte, Info, error) {
	m, err := wasm.Parse(module)
	if err != nil {
		return nil, Info{}, fmt.Errorf("meter: %w", err)
	}
	if !p.trustInput {
		if err := wasm.Validate(m); err != nil {
			return nil, Info{}, fmt.Errorf("meter: %w", err)
		}
	}
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, wasm.ReservedPrefix) {
			return nil, Info{}, fmt.Errorf("meter: export %.64q: %w: names that start with %s are reserved", e.Name, wasm.ErrLimit, wasm.ReservedPrefix)
		}
	}
	w := &writer{m: m, policy: p, fuel: uint64(len(m.GlobalSpace())), refill: uint64(m.Imported(wasm.KindFunc) + len(m.Funcs))}
	code, err := w.code()
	if err != nil {
		return nil, Info{}, fmt.Errorf("meter: %w", err)
	}
	return w.module(code), w.info, nil
}

// A writer makes the rewritten module.
type writer struct {
	m      *wasm.Module
	policy policy
	info   Info
	fuel   uint64 // index of the counter; rest is the one behind it
	refill uint64 // index of the function that charges call when the counter is empty

	plan plan
}

// module puts the sections together, in the order that the format asks for: two of them
// may be missing in the original.
func (w *writer) module(code []byte) []byte {
	m := w.m
	from := map[wasm.SectionID][]byte{}
	for _, s := range m.Sections {
		if s.ID != wasm.SectionCustom {
			from[s.ID] = m.Bytes[s.Data.Start:s.Data.End]
		}
	}
	out := make([]byte, 0, len(m.Bytes)+len(code)/8+256)
	out = append(out, m.Bytes[:8]...)
	for _, id := range [...]wasm.SectionID{
		wasm.SectionType, wasm.SectionImport, wasm.SectionFunction, wasm.SectionTable, wasm.SectionMemory,
		wasm.SectionGlobal, wasm.SectionExport, wasm.SectionElement, wasm.SectionDataCount, wasm.SectionCode, wasm.SectionData,
	} {
		content, ok := from[id]
		switch id {
		case wasm.SectionType: // that of the function that refills
			content, ok = append(appendCount(len(m.Types)+1, content), 0x60, 0, 0), true
		case wasm.SectionFunction:
			content, ok = wasm.AppendUint(appendCount(len(m.Funcs)+1, content), uint64(len(m.Types))), true
		case wasm.SectionGlobal:
			content, ok = w.globals(content), true
		case wasm.SectionExport:
			content, ok = w.exports(content), true
		case wasm.SectionCode:
			content, ok = code, true
		}
		if ok {
			out = wasm.AppendSection(out, id, content)
		}
	}
	if names := m.FuncNames(); names != nil {
		out = wasm.AppendCustom(out, "name", names)
	}
	return out
}

// items returns the content of a section without the count in front.
func items(content []byte) []byte {
	for i, c := range content {
		if c < 0x80 {
			return content[i+1:]
		}
	}
	return nil
}

// appendCount returns the content of a section with another count in front.
func appendCount(n int, content []byte) []byte {
	return append(wasm.AppendUint(nil, uint64(n)), items(content)...)
}

// globals appends the counter and the rest, which start at zero.
func (w *writer) globals(content []byte) []byte {
	out := appendCount(len(w.m.Globals)+2, content)
	for range 2 {
		out = append(out, byte(wasm.I64), 1, byte(wasm.OpI64Const), 0, byte(wasm.OpEnd))
	}
	return out
}

func (w *writer) exports(content []byte) []byte {
	var added []byte
	n := len(w.m.Exports)
	export := func(name string, kind wasm.Kind, index uint64) {
		added = wasm.AppendName(added, name)
		added = append(added, byte(kind))
		added = wasm.AppendUint(added, index)
		n++
	}
	export(Fuel, wasm.KindGlobal, w.fuel)
	export(Rest, wasm.KindGlobal, w.fuel+1)
	first := w.m.Imported(wasm.KindGlobal)
	for i := range w.m.Globals {
		g := &w.m.Globals[i]
		if g.Mutable && g.Type.IsNum() {
			name := global + strconv.Itoa(first+i)
			export(name, wasm.KindGlobal, uint64(first+i))
			w.info.Globals = append(w.info.Globals, Global{name, g.Type})
		}
	}
	if w.m.HasStart {
		export(Start, wasm.KindFunc, uint64(w.m.Start))
		w.info.HasStart = true
	}
	return append(appendCount(n, content), added...)
}
