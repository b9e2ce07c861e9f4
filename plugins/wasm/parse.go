package wasm

import "bytes"

// What Parse refuses to hold, whoever asks: far above any real module, and low enough
// that a file of 16 MiB stays within some tens of MiB of memory.
const (
	maxSections = 10_000
	maxTypes    = 100_000
	maxArity    = 1_000 // parameters, and results
	maxFuncs    = 200_000
	maxImports  = 100_000
	maxTables   = 1_000
	maxGlobals  = 100_000
	maxExports  = 100_000
	maxSegments = 100_000
	maxEntries  = 1 << 17 // of all element segments
	maxLocals   = 50_000  // of one function
	maxRuns     = 50_000
	maxTypeSum  = 1 << 20 // parameters and results of all types
)

// Parse reads a module. It checks the binary format of everything but the instructions
// of functions (Check and Validate read those), and the references from section to
// section that its result needs. Time and memory are linear in the file.
func Parse(b []byte) (*Module, error) {
	if len(b) < 8 || !bytes.Equal(b[:4], []byte("\x00asm")) {
		return nil, fault(ErrMalformed, place(0), "magic header not detected")
	}
	if !bytes.Equal(b[4:8], []byte{1, 0, 0, 0}) {
		return nil, fault(ErrUnsupported, place(4), "version % x, only version 1 is known", b[4:8])
	}
	m := &Module{Bytes: b}
	r := reader{b: b, pos: 8, end: len(b)}
	last := 0
	for r.left() > 0 && r.err == nil {
		last = m.section(&r, last)
	}
	if r.err != nil {
		return nil, r.err
	}
	if err := m.complete(); err != nil {
		return nil, err
	}
	return m, nil
}

// section reads one section and returns its place in the order.
func (m *Module) section(r *reader, last int) int {
	start := r.pos
	id := SectionID(r.byte())
	size := r.u32()
	if r.err != nil {
		return last
	}
	if id == 13 {
		r.unsupported("exception handling: tag section")
		return last
	}
	if id > SectionDataCount {
		r.pos = start
		r.fail("unknown section %d", id)
		return last
	}
	if uint64(size) > uint64(r.left()) {
		r.fail("section %s announces %d bytes, %d are left", id, size, r.left())
		return last
	}
	if len(m.Sections) == maxSections {
		r.err = fault(ErrLimit, place(start), "more than %d sections", maxSections)
		return last
	}
	if id != SectionCustom {
		if id.Order() <= last {
			r.fail("section %s stands twice or out of order", id)
			return last
		}
		last = id.Order()
	}
	s := reader{b: r.b, pos: r.pos, end: r.pos + int(size)}
	sec := Section{ID: id, All: Range{start, s.end}, Data: Range{s.pos, s.end}}
	if id == SectionCustom {
		sec.Name = s.name()
		sec.Data.Start, s.pos = s.pos, s.end
	} else {
		m.content(id, &s)
	}
	if s.err == nil && s.left() > 0 {
		s.fail("section %s has %d bytes too many", id, s.left())
	}
	r.pos, r.err = s.end, s.err
	m.Sections = append(m.Sections, sec)
	return last
}

func (m *Module) content(id SectionID, r *reader) {
	switch id {
	case SectionType:
		m.readTypes(r)
	case SectionImport:
		m.readImports(r)
	case SectionFunction:
		n := r.count("functions", 1, maxFuncs)
		m.Funcs = make([]uint32, 0, n)
		for range n {
			m.Funcs = append(m.Funcs, m.typeIndex(r))
		}
		m.funcSpace = append(m.funcSpace, m.Funcs...)
	case SectionTable:
		for range r.count("tables", 3, maxTables) {
			m.Tables = append(m.Tables, r.tableType())
		}
		m.tableSpace = append(m.tableSpace, m.Tables...)
	case SectionMemory:
		for range r.count("memories", 2, maxTables) {
			m.Memories = append(m.Memories, r.memoryType())
		}
		m.memorySpace = append(m.memorySpace, m.Memories...)
	case SectionGlobal:
		n := r.count("globals", 4, maxGlobals)
		m.Globals = make([]Global, 0, n)
		for range n {
			m.Globals = append(m.Globals, Global{r.globalType(), r.constExpr()})
			if r.err != nil {
				return
			}
		}
		for i := range m.Globals {
			m.globalSpace = append(m.globalSpace, m.Globals[i].GlobalType)
		}
	case SectionExport:
		m.readExports(r)
	case SectionStart:
		m.Start, m.HasStart = r.u32(), true
	case SectionElement:
		m.readElements(r)
	case SectionDataCount:
		m.DataCount, m.HasDataCount = r.u32(), true
	case SectionCode:
		m.readCode(r)
	case SectionData:
		m.readData(r)
	}
}

// complete checks what sections say about each other.
func (m *Module) complete() error {
	if len(m.Bodies) != len(m.Funcs) {
		return fault(ErrMalformed, "code", "function and code section have inconsistent lengths: %d and %d", len(m.Funcs), len(m.Bodies))
	}
	if m.HasDataCount && int(m.DataCount) != len(m.Datas) {
		return fault(ErrMalformed, "data", "data count and data section have inconsistent lengths: %d and %d", m.DataCount, len(m.Datas))
	}
	if len(m.memorySpace) > 1 {
		return fault(ErrUnsupported, "memory", "several memories")
	}
	return nil
}

func (m *Module) typeIndex(r *reader) uint32 {
	i := r.u32()
	if r.err == nil && int(i) >= len(m.Types) {
		r.err = fault(ErrInvalid, place(r.pos), "unknown type %d", i)
	}
	return i
}

func (m *Module) readTypes(r *reader) {
	sum := 0
	for range r.count("types", 3, maxTypes) {
		switch form := r.byte(); {
		case r.err != nil:
			return
		case form == 0x5e || form == 0x5f || form == 0x4e || form == 0x4f || form == 0x50:
			r.unsupported("garbage collection: type form 0x" + ValType(form).String()[7:])
			return
		case form != 0x60:
			r.fail("unknown form of type 0x%02x", form)
			return
		}
		t := FuncType{r.valTypes("parameters"), r.valTypes("results")}
		if sum += len(t.Params) + len(t.Results); sum > maxTypeSum && r.err == nil {
			r.err = fault(ErrLimit, place(r.pos), "types have more than %d parameters and results", maxTypeSum)
		}
		if r.err != nil {
			return
		}
		m.Types = append(m.Types, t)
	}
}

func (r *reader) valTypes(what string) []ValType {
	n := r.count(what, 1, maxArity)
	if n == 0 {
		return nil
	}
	t := make([]ValType, n)
	for i := range t {
		t[i] = r.valType()
	}
	return t
}

func (m *Module) readImports(r *reader) {
	for range r.count("imports", 4, maxImports) {
		i := Import{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
		if r.err != nil {
			return
		}
		switch i.Kind {
		case KindFunc:
			i.Type = m.typeIndex(r)
			m.funcSpace = append(m.funcSpace, i.Type)
		case KindTable:
			i.Table = r.tableType()
			m.tableSpace = append(m.tableSpace, i.Table)
		case KindMemory:
			i.Memory = r.memoryType()
			m.memorySpace = append(m.memorySpace, i.Memory)
		case KindGlobal:
			i.Global = r.globalType()
			m.globalSpace = append(m.globalSpace, i.Global)
		case 4:
			r.unsupported("exception handling: import of a tag")
		default:
			r.fail("malformed import kind %d", i.Kind)
		}
		if r.err != nil {
			return
		}
		m.imported[i.Kind]++
		m.Imports = append(m.Imports, i)
	}
}

// size reads the limits of a memory or table.
func (r *reader) size(what string) (s Size) {
	switch flags := r.byte(); {
	case r.err != nil:
		return s
	case flags&^0x0f != 0:
		r.fail("malformed limits of a %s", what)
		return s
	case flags&0x08 != 0:
		r.unsupported("custom page sizes")
		return s
	case flags&0x04 != 0:
		r.unsupported("64-bit " + what)
		return s
	case flags&0x02 != 0:
		r.unsupported("threads: shared " + what)
		return s
	default:
		s.HasMax = flags == 1
	}
	s.Min = r.u32()
	if s.HasMax {
		s.Max = r.u32()
		if s.Max < s.Min && r.err == nil {
			r.err = fault(ErrInvalid, place(r.pos), "size minimum of a %s is greater than its maximum", what)
		}
	}
	return s
}

func (r *reader) tableType() TableType {
	if r.left() > 0 && r.b[r.pos] == 0x40 {
		r.unsupported("typed function references: table with an initial value")
		return TableType{}
	}
	t := r.refType()
	return TableType{t, r.size("table")}
}

func (r *reader) memoryType() Size {
	s := r.size("memory")
	if (s.Min > 1<<16 || s.Max > 1<<16) && r.err == nil {
		r.err = fault(ErrInvalid, place(r.pos), "memory size of more than 65536 pages")
	}
	return s
}

func (r *reader) globalType() GlobalType {
	t := r.valType()
	mut := r.byte()
	if mut > 1 && r.err == nil {
		if mut == 2 || mut == 3 {
			r.unsupported("threads: shared global")
		} else {
			r.fail("malformed mutability %d", mut)
		}
	}
	return GlobalType{t, mut == 1}
}

// constExpr reads a constant expression: one instruction and the end.
func (r *reader) constExpr() (c ConstOp) {
	w := Instrs{r: *r}
	var in Instr
	if !w.Next(&in) {
		*r = w.r
		if r.err == nil {
			r.fail("unexpected end")
		}
		return c
	}
	*r = w.r
	c = ConstOp{Op: in.Op, Index: in.X, Type: in.Type, At: in.Start}
	switch in.Op {
	case OpI32Const:
		c.Type = I32
	case OpI64Const:
		c.Type = I64
	case OpF32Const:
		c.Type = F32
	case OpF64Const:
		c.Type = F64
	case OpV128Const:
		c.Type = V128
	case OpRefFunc:
		c.Type = FuncRef
	case OpGlobalGet, OpRefNull:
	default:
		r.err = fault(ErrInvalid, place(in.Start), "constant expression required, got %s", in.Op)
		return c
	}
	r.constEnd()
	return c
}

func (r *reader) constEnd() {
	at := r.pos
	switch op := r.byte(); {
	case r.err != nil || op == byte(OpEnd):
	case op == 0x6a || op == 0x6b || op == 0x6c || op == 0x7c || op == 0x7d || op == 0x7e:
		r.unsupported("extended constant expressions")
	case op >= 0x41 && op <= 0x44 || op == 0x23 || op == 0xd0 || op == 0xd2:
		r.err = fault(ErrUnsupported, place(at), "extended constant expressions: a second instruction")
	default:
		r.err = fault(ErrInvalid, place(at), "constant expression required, got %s", Op(op))
	}
}

func (m *Module) readExports(r *reader) {
	n := r.count("exports", 3, maxExports)
	seen := make(map[string]struct{}, n)
	for range n {
		e := Export{r.name(), Kind(r.byte()), r.u32()}
		if r.err != nil {
			return
		}
		if e.Kind > KindGlobal {
			if e.Kind == 4 {
				r.unsupported("exception handling: export of a tag")
			} else {
				r.fail("malformed export kind %d", e.Kind)
			}
			return
		}
		if _, twice := seen[e.Name]; twice {
			r.err = fault(ErrInvalid, place(r.pos), "duplicate export name %q", short(e.Name))
			return
		}
		seen[e.Name] = struct{}{}
		m.Exports = append(m.Exports, e)
	}
}

// short cuts a stranger's name to what an error message can hold.
func short(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}
