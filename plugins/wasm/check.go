package wasm

import (
	"strconv"
	"strings"
)

// Limits is what a plugin's module may hold. The zero value of a number means none.
type Limits struct {
	// Modules are the names that functions may be imported from.
	Modules []string

	FileBytes    int // of the whole module
	CustomBytes  int // of all custom sections
	Customs      int // custom sections
	Types        int
	Params       int // of a type
	Results      int // of a type
	Imports      int
	Funcs        int // that the module defines
	Exports      int
	Globals      int
	Tables       int
	TableEntries int // of all tables
	MemoryPages  int // initial
	Segments     int // elements and data
	Elements     int // entries of all element segments
	Locals       int // of a function, without its parameters
	LocalsSum    int // of all functions
	FuncBytes    int // code of a function
	// ControlOps bounds the blocks and branches of a function; ControlSquares bounds the
	// sum of their squares over all functions. A compiler's time grows with that sum:
	// about 13 ns for each unit. A loop counts four times, for the rewriter puts a block
	// into each; four labels of br_table count once.
	ControlOps     int
	ControlSquares int64
}

// PluginLimits returns the limits for plugins: the largest seen in guests of Go, Rust, C
// and QuickJS with room above, and below what makes a compiler slow. The name of WASI's
// module is left to whoever grants it.
func PluginLimits() Limits {
	return Limits{
		Modules:        []string{"ganglion"},
		FileBytes:      16 << 20,
		CustomBytes:    8 << 20,
		Customs:        256,
		Types:          4096,
		Params:         128,
		Results:        16,
		Imports:        256,
		Funcs:          65536,
		Exports:        1024,
		Globals:        1024,
		Tables:         4,
		TableEntries:   16384,
		MemoryPages:    256,
		Segments:       65536,
		Elements:       65536,
		Locals:         1024,
		LocalsSum:      1 << 20,
		FuncBytes:      256 << 10,
		ControlOps:     4000,
		ControlSquares: 1e8,
	}
}

// FuncFacts says how large the code of a function is.
type FuncFacts struct {
	Bytes      int
	ControlOps int
}

// Check decides whether a module keeps within limits and asks for nothing that a plugin
// may not have. It reads every instruction for its opcode, not for its types: a module
// that passes may still be invalid.
func Check(m *Module, l Limits) error {
	elements := 0
	for i := range m.Elements {
		elements += m.Elements[i].Count
	}
	for _, c := range []struct {
		what   string
		n, max int
	}{
		{"bytes", len(m.Bytes), l.FileBytes},
		{"types", len(m.Types), l.Types},
		{"imports", len(m.Imports), l.Imports},
		{"functions", len(m.Funcs), l.Funcs},
		{"exports", len(m.Exports), l.Exports},
		{"globals", len(m.Globals), l.Globals},
		{"tables", len(m.tableSpace), l.Tables},
		{"segments", len(m.Elements) + len(m.Datas), l.Segments},
		{"elements", elements, l.Elements},
	} {
		if c.n > c.max {
			return fault(ErrLimit, "module", "%d %s, at most %d", c.n, c.what, c.max)
		}
	}
	for _, check := range []func(*Module, Limits) error{checkCustoms, checkTypes, checkImports, checkExports, checkSpaces, checkCode} {
		if err := check(m, l); err != nil {
			return err
		}
	}
	return nil
}

func checkCustoms(m *Module, l Limits) error {
	n, sum := 0, 0
	for _, s := range m.Sections {
		if s.ID == SectionCustom {
			n++
			sum += s.All.Len()
		}
	}
	if n > l.Customs {
		return fault(ErrLimit, "custom sections", "%d, at most %d", n, l.Customs)
	}
	if sum > l.CustomBytes {
		return fault(ErrLimit, "custom sections", "%d bytes, at most %d", sum, l.CustomBytes)
	}
	return nil
}

func checkTypes(m *Module, l Limits) error {
	for i, t := range m.Types {
		if len(t.Params) > l.Params || len(t.Results) > l.Results {
			return fault(ErrLimit, "types", "type %d has %d parameters and %d results, at most %d and %d", i, len(t.Params), len(t.Results), l.Params, l.Results)
		}
	}
	return nil
}

func checkImports(m *Module, l Limits) error {
	for _, i := range m.Imports {
		if i.Kind != KindFunc {
			return fault(ErrLimit, "import "+quote(i.Module, i.Name), "is a %s, only functions may be imported", i.Kind)
		}
		known := false
		for _, name := range l.Modules {
			known = known || name == i.Module
		}
		if !known {
			return fault(ErrLimit, "import "+quote(i.Module, i.Name), "only from %s", strings.Join(l.Modules, ", "))
		}
	}
	return nil
}

func quote(module, name string) string { return `"` + short(module) + "." + short(name) + `"` }

// ReservedPrefix starts the names of exports that the rewriter adds.
const ReservedPrefix = "__gg_"

func checkExports(m *Module, l Limits) error {
	memory := false
	for _, e := range m.Exports {
		switch {
		case strings.HasPrefix(e.Name, ReservedPrefix):
			return fault(ErrLimit, "exports", "%q: names that start with %s are reserved", short(e.Name), ReservedPrefix)
		case e.Name == "_start":
			return fault(ErrLimit, "exports", `"_start": a plugin is a library (reactor), not a command`)
		case e.Name == "memory":
			if e.Kind != KindMemory {
				return fault(ErrLimit, "exports", `"memory" is a %s`, e.Kind)
			}
			memory = true
		}
	}
	if len(m.Memories) != 1 || !memory {
		return fault(ErrLimit, "memory", `exactly one memory, exported as "memory", is needed`)
	}
	return nil
}

// checkSpaces looks at memory, tables and globals. Globals that can change are part of
// an instance's state, which is copied as numbers of 64 bits; references are not numbers.
func checkSpaces(m *Module, l Limits) error {
	if pages := m.Memories[0].Min; int64(pages) > int64(l.MemoryPages) {
		return fault(ErrLimit, "memory", "%d pages at start, at most %d", pages, l.MemoryPages)
	}
	sum := uint64(0)
	for _, t := range m.tableSpace {
		sum += uint64(t.Min)
	}
	if sum > uint64(l.TableEntries) {
		return fault(ErrLimit, "tables", "%d entries, at most %d", sum, l.TableEntries)
	}
	for i, g := range m.globalSpace {
		if g.Mutable && !g.Type.IsNum() {
			return fault(ErrLimit, "globals", "global %d is mutable and of type %s: its state cannot be copied", i, g.Type)
		}
	}
	return nil
}

func checkCode(m *Module, l Limits) error {
	locals := 0
	for i := range m.Bodies {
		b := &m.Bodies[i]
		locals += b.Count
		if b.Count > l.Locals || locals > l.LocalsSum {
			return fault(ErrLimit, m.funcPlace(i), "%d locals, at most %d and %d in all functions", b.Count, l.Locals, l.LocalsSum)
		}
		if n := b.Code.Len(); n > l.FuncBytes {
			return fault(ErrLimit, m.funcPlace(i), "%d bytes, at most %d", n, l.FuncBytes)
		}
	}
	squares := int64(0)
	for i := range m.Bodies {
		ops, err := m.controlOps(&m.Bodies[i], true)
		if err != nil {
			return err
		}
		if ops > l.ControlOps {
			return fault(ErrLimit, m.funcPlace(i), "%d blocks and branches, at most %d", ops, l.ControlOps)
		}
		if squares += int64(ops) * int64(ops); squares > l.ControlSquares {
			return fault(ErrLimit, m.funcPlace(i), "the squares of blocks and branches per function add up to more than %d", l.ControlSquares)
		}
	}
	return nil
}

// CodeBytes is the size of all functions that the module defines.
func (m *Module) CodeBytes() (sum int) {
	for i := range m.Bodies {
		sum += m.Bodies[i].Code.Len()
	}
	return sum
}

// Facts returns the size of every function that the module defines.
func (m *Module) Facts() ([]FuncFacts, error) {
	facts := make([]FuncFacts, len(m.Bodies))
	for i := range m.Bodies {
		ops, err := m.controlOps(&m.Bodies[i], false)
		if err != nil {
			return nil, err
		}
		facts[i] = FuncFacts{m.Bodies[i].Code.Len(), ops}
	}
	return facts, nil
}

// controlOps counts the blocks and branches of a body, and refuses the instructions that
// change tables (plugin): a table's entries cannot be copied with an instance's state,
// and no limit on memory covers them. It refuses those that drop segments too, and
// memory.init, which can tell whether one was dropped: of all segments, active ones
// included, instances would keep that from one request to the next.
func (m *Module) controlOps(b *Body, plugin bool) (int, error) {
	w, n := m.Walk(b.Code), 0
	var in Instr
	for w.skipPlain(); w.Next(&in); w.skipPlain() {
		switch in.Op {
		case OpBlock, OpIf, OpElse, OpBr, OpBrIf:
			n++
		case OpLoop:
			n += 4
		case OpBrTable:
			n += 1 + len(in.Labels)/4
		case OpDataDrop, OpElemDrop, OpMemoryInit:
			if plugin {
				return 0, fault(ErrLimit, place(in.Start), "%s: whether a segment was dropped is in no snapshot", segmentOps[in.Op])
			}
		case OpTableSet, OpTableGrow, OpTableFill, OpTableCopy, OpTableInit:
			if plugin {
				return 0, fault(ErrLimit, place(in.Start), "%s: a plugin may not change tables", tableOps[in.Op])
			}
		}
	}
	return n, w.Err()
}

var segmentOps = map[Op]string{OpDataDrop: "data.drop", OpElemDrop: "elem.drop", OpMemoryInit: "memory.init"}

var tableOps = map[Op]string{OpTableSet: "table.set", OpTableGrow: "table.grow", OpTableFill: "table.fill", OpTableCopy: "table.copy", OpTableInit: "table.init"}

// funcPlace names a function that the module defines by its index in the module.
func (m *Module) funcPlace(i int) string {
	return "function " + strconv.Itoa(m.imported[KindFunc]+i)
}
