package wasm

import "strconv"

// ValType is a value type in its binary form.
type ValType byte

// The value types of WebAssembly 2.0. Unknown is the type of a value that dead code
// pops from an empty stack; it appears in Validate alone.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
	unknown   ValType = 0
)

// String returns the name of the type in the text format.
func (t ValType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	case unknown:
		return "any"
	}
	return "type 0x" + strconv.FormatUint(uint64(t), 16)
}

// IsRef reports whether the type is a reference type.
func (t ValType) IsRef() bool { return t == FuncRef || t == ExternRef }

// IsNum reports whether the type is one of the four number types.
func (t ValType) IsNum() bool { return t >= F64 && t <= I32 }

// SectionID is the number of a section.
type SectionID byte

// The sections of WebAssembly 2.0. Their numbers are not their order: DataCount stands
// between Element and Code.
const (
	SectionCustom SectionID = iota
	SectionType
	SectionImport
	SectionFunction
	SectionTable
	SectionMemory
	SectionGlobal
	SectionExport
	SectionStart
	SectionElement
	SectionCode
	SectionData
	SectionDataCount
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count"}

// Order is the place of a non-custom section in a module.
func (id SectionID) Order() int {
	switch {
	case id == SectionDataCount:
		return int(SectionCode)
	case id >= SectionCode:
		return int(id) + 1
	}
	return int(id)
}

// String returns the name of the section.
func (id SectionID) String() string {
	if int(id) < len(sectionNames) {
		return sectionNames[id]
	}
	return "section " + strconv.Itoa(int(id))
}

// Range is a part of the file: Bytes[Start:End].
type Range struct{ Start, End int }

// Len is the number of bytes in the range.
func (r Range) Len() int { return r.End - r.Start }

// Section is one section as it stands in the file.
type Section struct {
	ID   SectionID
	Name string // of a custom section
	All  Range  // with number and size
	Data Range  // the content; of a custom section without its name
}

// FuncType is the type of a function or of a block.
type FuncType struct{ Params, Results []ValType }

// Kind says what an import or export is.
type Kind byte

// The kinds of imports and exports.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// String returns the name of the kind in the text format.
func (k Kind) String() string {
	if k <= KindGlobal {
		return [...]string{"func", "table", "memory", "global"}[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Size is the size of a memory in pages or of a table in entries.
type Size struct {
	Min, Max uint32
	HasMax   bool
}

// TableType is the type of a table.
type TableType struct {
	Elem ValType
	Size
}

// GlobalType is the type of a global.
type GlobalType struct {
	Type    ValType
	Mutable bool
}

// ConstOp is the one instruction of a constant expression of WebAssembly 2.0.
type ConstOp struct {
	Op    Op
	Index uint32  // of global.get and ref.func
	Type  ValType // of ref.null
	At    int     // offset in the file
}

// Import is one import. Exactly the field of its kind is set.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         uint32 // index of a function's type
	Table        TableType
	Memory       Size
	Global       GlobalType
}

// Export is one export.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
}

// Global is a global that the module defines.
type Global struct {
	GlobalType
	Init ConstOp
}

// Mode says when a segment is used.
type Mode byte

// The modes of segments. Declarative is for elements alone.
const (
	Active Mode = iota
	Passive
	Declarative
)

// Element is one element segment. Its entries are function indices or, with Exprs,
// constant expressions; they are read in place.
type Element struct {
	Mode    Mode
	Table   uint32
	Offset  ConstOp
	Type    ValType
	Count   int
	Exprs   bool
	Entries Range
}

// Data is one data segment.
type Data struct {
	Mode   Mode
	Memory uint32
	Offset ConstOp
	Bytes  Range
}

// LocalRun is a run of locals of one type, as a function declares them.
type LocalRun struct {
	Count uint32
	Type  ValType
}

// Body is the code of one function that the module defines.
type Body struct {
	All    Range // locals and code, without the size in front
	Locals Range // the declarations, without their count
	Runs   int   // number of declarations
	Count  int   // locals without the parameters
	Code   Range // the instructions with the last end
}

// Module is a module as Parse read it. It keeps the bytes of the file and points into
// them; neither may be changed while it is in use. It is safe for concurrent readers.
type Module struct {
	Bytes    []byte
	Sections []Section // in the order of the file, custom ones included
	Types    []FuncType
	Imports  []Import
	Funcs    []uint32 // type of each function that the module defines
	Tables   []TableType
	Memories []Size
	Globals  []Global
	Exports  []Export
	Start    uint32
	HasStart bool
	Elements []Element
	// DataCount is the number of data segments that section "data count" announces.
	DataCount    uint32
	HasDataCount bool
	Bodies       []Body
	Datas        []Data

	// The spaces of indices: what is imported, then what the module defines.
	funcSpace   []uint32 // types
	tableSpace  []TableType
	memorySpace []Size
	globalSpace []GlobalType
	imported    [4]int // by kind
}

// Imported is the number of imports of a kind: the index of the first function, table,
// memory or global that the module itself defines.
func (m *Module) Imported(k Kind) int { return m.imported[k] }

// GlobalSpace returns the type of every global, imported ones first.
func (m *Module) GlobalSpace() []GlobalType { return m.globalSpace }

// FuncType returns the type of function i, which must exist.
func (m *Module) FuncType(i uint32) *FuncType { return &m.Types[m.funcSpace[i]] }

// Export returns the export of a name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// Custom returns the content of the first custom section of a name: a part of the file,
// not a copy.
func (m *Module) Custom(name string) ([]byte, bool) {
	for _, s := range m.Sections {
		if s.ID == SectionCustom && s.Name == name {
			return m.Bytes[s.Data.Start:s.Data.End:s.Data.End], true
		}
	}
	return nil, false
}

func place(offset int) string { return "offset " + strconv.Itoa(offset) }

// Arity returns the numbers of parameters and results of a block, whose type must exist.
func (m *Module) Arity(t BlockType) (params, results int) {
	p, r, _ := m.block(t)
	return len(p), len(r)
}
