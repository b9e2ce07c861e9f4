package wasm

// Instr is one instruction with its immediates.
type Instr struct {
	Op         Op
	Start, End int // the bytes of the instruction in the file
	// X is the first index or number: a label, function, local, global, table, segment,
	// the type of call_indirect, the lane; of br_table the default label. Y is the second
	// index (table of call_indirect and table.init, source of table.copy).
	X, Y   uint32
	Block  BlockType // of block, loop, if
	Type   ValType   // of ref.null and of select with a type
	Labels []uint32  // of br_table without the default; valid until the next instruction
}

// BlockType is the type of a block: nothing, one result, or an entry of the types.
type BlockType struct {
	Index int     // of the type, or −1
	Value ValType // the one result, or 0
}

// Instrs walks over the instructions of a range of a file. It checks the binary format
// alone: indices may be out of range, and types are not looked at.
type Instrs struct {
	r      reader
	labels []uint32
}

// Walk returns the instructions of a body.
func (m *Module) Walk(code Range) *Instrs {
	return &Instrs{r: reader{b: m.Bytes, pos: code.Start, end: code.End}}
}

// Err returns the fault that ended the walk, or nil at the end of the range.
func (w *Instrs) Err() error { return w.r.err }

// Next reads the next instruction into in and reports whether there was one.
func (w *Instrs) Next(in *Instr) bool {
	r := &w.r
	if r.pos >= r.end {
		return false
	}
	in.Start = r.pos
	c := r.b[r.pos]
	r.pos++
	in.Op = Op(c)
	info := &ops[c]
	if c == 0xfc || c == 0xfd {
		if info = w.prefixed(in, c); info == nil {
			return false
		}
	}
	switch info.imm {
	case immNone:
	case immLocal, immGlobal, immLabel, immFunc, immTable, immData, immElem:
		in.X = r.u32()
	case immMemArg:
		w.memArg(info)
	case immI32:
		r.signed(32)
	default:
		w.rare(in, info)
	}
	in.End = r.pos
	return r.err == nil
}

// skipPlain moves past instructions that neither branch nor carry more than short
// numbers: nearly all of any code, and nearly all of the time that reading it takes.
func (w *Instrs) skipPlain() {
	rest := w.r.b[w.r.pos:w.r.end]
	n := 0
scan:
	for n < len(rest) {
		switch form := forms[rest[n]]; {
		case form == formBare:
			n++
		case form == formNumber && n+1 < len(rest) && rest[n+1] < 0x80:
			n += 2
		case form >= formMemory && n+2 < len(rest) && rest[n+1] <= form-formMemory && rest[n+2] < 0x80:
			n += 3
		case form == formVector && n+1 < len(rest) && rest[n+1] < 0x80 && ops[opsVec+int(rest[n+1])].imm == immNone:
			n += 2
		default:
			break scan
		}
	}
	w.r.pos += n
}

// How skipPlain takes an instruction. With formMemory + n, an alignment of at most n and
// an offset follow.
const (
	formOther = iota
	formBare
	formNumber
	formVector
	formMemory
)

var forms = func() (t [256]byte) {
	for i := range t {
		switch op := Op(i); ops[i].imm {
		case immNone:
			if op > OpSelect || op == OpDrop || op == OpNop {
				t[i] = formBare
			}
		case immLocal, immGlobal, immFunc, immI32, immI64:
			t[i] = formNumber
		case immMemArg:
			t[i] = formMemory + ops[i].align
		}
	}
	t[0xfd] = formVector
	return t
}()

// prefixed reads the number behind 0xFC or 0xFD. It must stand in its shortest form: the
// specification would allow padding, no tool writes it, and readers elsewhere disagree
// on it, which is how an instruction could be seen by one reader and not by the next.
func (w *Instrs) prefixed(in *Instr, prefix byte) *opInfo {
	r := &w.r
	at := r.pos
	n := r.u32()
	if r.err != nil {
		return nil
	}
	if prefix == 0xfd && n > 0xff {
		r.unsupported("relaxed SIMD")
		return nil
	}
	if n > 0xff {
		r.fail("unknown opcode 0x%02x %d", prefix, n)
		return nil
	}
	if short := 1 + int(n>>7); r.pos-at != short {
		r.fail("opcode 0x%02x %d is padded", prefix, n)
		return nil
	}
	in.Op = Op(prefix)<<8 | Op(n)
	return in.Op.info()
}

func (w *Instrs) memArg(info *opInfo) {
	r := &w.r
	switch align := r.u32(); {
	case r.err != nil:
	case align&0x40 != 0 && align < 0x80:
		r.unsupported("several memories")
	case align >= 32:
		r.fail("malformed alignment %d", align)
	case align > uint32(info.align):
		r.err = fault(ErrInvalid, place(r.pos), "alignment 2^%d is larger than natural", align)
	}
	r.u32()
}

func (w *Instrs) zero(what string) {
	if c := w.r.byte(); c != 0 && w.r.err == nil {
		w.r.unsupported("several memories: " + what + " other than 0")
	}
}

// rare reads the immediates that seldom occur.
func (w *Instrs) rare(in *Instr, info *opInfo) {
	r := &w.r
	switch info.imm {
	case immBlock:
		in.Block = r.blockType()
	case immLabels:
		w.brTable(in)
	case immIndirect:
		in.X = r.u32()
		in.Y = r.u32()
	case immTypes:
		n := r.u32()
		if n != 1 && r.err == nil {
			r.err = fault(ErrInvalid, place(r.pos), "select of %d types", n)
		}
		in.Type = r.valType()
	case immMemLane:
		w.memArg(info)
		in.X = r.lane(info.lanes)
	case immMemory:
		w.zero("memory")
	case immI64:
		r.signed(64)
	case immF32:
		r.skip(4)
	case immF64:
		r.skip(8)
	case immRefType:
		in.Type = r.refType()
	case immMemInit:
		in.X = r.u32()
		w.zero("memory")
	case immMemCopy:
		w.zero("memory")
		w.zero("memory")
	case immTableInit, immTableCopy:
		in.X = r.u32()
		in.Y = r.u32()
	case immV128:
		r.skip(16)
	case immLanes:
		for range 16 {
			r.lane(info.lanes)
		}
	case immLane:
		in.X = r.lane(info.lanes)
	case immForbidden:
		r.unsupported(info.feature)
	default:
		r.pos = in.Start
		r.fail("unknown %s", in.Op)
	}
}

func (r *reader) lane(lanes byte) uint32 {
	c := r.byte()
	if c >= lanes && r.err == nil {
		r.err = fault(ErrInvalid, place(r.pos), "lane %d of %d", c, lanes)
	}
	return uint32(c)
}

func (w *Instrs) brTable(in *Instr) {
	r := &w.r
	n := r.u32()
	if r.err == nil && uint64(n) >= uint64(r.left()) { // one byte each, and the default
		r.fail("br_table of %d labels in %d bytes", n, r.left())
		return
	}
	w.labels = w.labels[:0]
	for range n {
		w.labels = append(w.labels, r.u32())
	}
	in.Labels = w.labels
	in.X = r.u32()
}

func (r *reader) valType() ValType {
	t := ValType(r.byte())
	if r.err != nil {
		return 0
	}
	if t.IsNum() || t.IsRef() || t == V128 {
		return t
	}
	r.badType(t)
	return 0
}

func (r *reader) refType() ValType {
	t := ValType(r.byte())
	if r.err != nil {
		return 0
	}
	if !t.IsRef() {
		r.badType(t)
		return 0
	}
	return t
}

func (r *reader) badType(t ValType) {
	r.pos--
	switch {
	case t == 0x69 || t == 0x74:
		r.unsupported("exception handling: type exnref")
	case t == 0x63 || t == 0x64:
		r.unsupported("typed function references")
	case t >= 0x65 && t <= 0x73 && !t.IsRef():
		r.unsupported("garbage collection: " + t.String())
	default:
		r.fail("unknown %s", t)
	}
}

// blockType reads a type of one byte or a type index, which is a positive number of 33 bits.
func (r *reader) blockType() BlockType {
	if r.pos >= r.end {
		r.fail("unexpected end")
		return BlockType{Index: -1}
	}
	switch t := ValType(r.b[r.pos]); {
	case t == 0x40:
		r.pos++
		return BlockType{Index: -1}
	case t >= 0x40 && t < 0x80: // a negative number of one byte
		return BlockType{Index: -1, Value: r.valType()}
	}
	i := r.signed(33)
	if i < 0 {
		r.fail("negative type index")
		return BlockType{Index: -1}
	}
	return BlockType{Index: int(i)}
}
