package wasm

import "fmt"

// Op is an instruction: one byte, or 0xFC00 and 0xFD00 plus the number behind the prefix.
type Op uint16

// The instructions that readers of this package tell apart by name.
const (
	OpUnreachable  Op = 0x00
	OpNop          Op = 0x01
	OpBlock        Op = 0x02
	OpLoop         Op = 0x03
	OpIf           Op = 0x04
	OpElse         Op = 0x05
	OpEnd          Op = 0x0b
	OpBr           Op = 0x0c
	OpBrIf         Op = 0x0d
	OpBrTable      Op = 0x0e
	OpReturn       Op = 0x0f
	OpCall         Op = 0x10
	OpCallIndirect Op = 0x11
	OpDrop         Op = 0x1a
	OpSelect       Op = 0x1b
	OpSelectT      Op = 0x1c
	OpLocalGet     Op = 0x20
	OpLocalSet     Op = 0x21
	OpLocalTee     Op = 0x22
	OpGlobalGet    Op = 0x23
	OpGlobalSet    Op = 0x24
	OpTableGet     Op = 0x25
	OpTableSet     Op = 0x26
	OpMemorySize   Op = 0x3f
	OpMemoryGrow   Op = 0x40
	OpI32Const     Op = 0x41
	OpI64Const     Op = 0x42
	OpF32Const     Op = 0x43
	OpF64Const     Op = 0x44
	OpI64LtS       Op = 0x53
	OpI64GtS       Op = 0x55
	OpI64Add       Op = 0x7c
	OpI64Sub       Op = 0x7d
	OpI64Shl       Op = 0x86
	OpI64ShrU      Op = 0x88
	OpI64ExtendU   Op = 0xad
	OpRefNull      Op = 0xd0
	OpRefIsNull    Op = 0xd1
	OpRefFunc      Op = 0xd2
	OpMemoryInit   Op = 0xfc08
	OpDataDrop     Op = 0xfc09
	OpMemoryCopy   Op = 0xfc0a
	OpMemoryFill   Op = 0xfc0b
	OpTableInit    Op = 0xfc0c
	OpElemDrop     Op = 0xfc0d
	OpTableCopy    Op = 0xfc0e
	OpTableGrow    Op = 0xfc0f
	OpTableSize    Op = 0xfc10
	OpTableFill    Op = 0xfc11
	OpV128Const    Op = 0xfd0c
	OpShuffle      Op = 0xfd0d
)

// String returns the number of the instruction as the specification writes it.
func (op Op) String() string {
	if op > 0xff {
		return fmt.Sprintf("opcode 0x%02x 0x%02x", byte(op>>8), byte(op))
	}
	return fmt.Sprintf("opcode 0x%02x", byte(op))
}

// An immediate says what follows an opcode.
type immediate byte

const (
	immNone immediate = iota
	immBlock
	immLabel
	immLabels
	immFunc
	immIndirect
	immTypes
	immLocal
	immGlobal
	immTable
	immMemArg // alignment, offset
	immMemLane
	immMemory
	immI32
	immI64
	immF32
	immF64
	immRefType
	immMemInit
	immData
	immMemCopy
	immTableInit
	immElem
	immTableCopy
	immV128
	immLanes
	immLane
	immForbidden // a feature outside WebAssembly 2.0
	immUnknown
)

// opInfo describes an instruction. sig lists the types that it pops and pushes, as
// letters: i32, i64, f32, f64 and v128 are i, I, f, F and v; an empty list of pops is
// written ":x". Instructions with sig "" are typed by hand in validate.go.
type opInfo struct {
	imm     immediate
	align   byte // of immMemArg, immMemLane: log2 of the natural alignment
	lanes   byte // of immLane, immMemLane: number of lanes
	pop     []ValType
	push    []ValType
	feature string // of immForbidden
}

// ops has the instructions without prefix, then those behind 0xFC, then behind 0xFD.
var ops = makeOps()

const (
	opsMisc = 0x100
	opsVec  = 0x200
)

// info returns the description of an instruction.
func (op Op) info() *opInfo {
	switch op >> 8 {
	case 0xfc:
		return &ops[opsMisc+int(op&0xff)]
	case 0xfd:
		return &ops[opsVec+int(op&0xff)]
	}
	return &ops[op&0xff]
}

func types(letters string) (t []ValType) {
	for _, c := range letters {
		t = append(t, map[rune]ValType{'i': I32, 'I': I64, 'f': F32, 'F': F64, 'v': V128}[c])
	}
	return t
}

// row says that the instructions from first to last share a description.
type row struct {
	first, last int
	imm         immediate
	align       byte
	lanes       byte
	pop, push   string
}

func makeOps() (table [0x300]opInfo) {
	for i := range table {
		table[i].imm = immUnknown
	}
	fill := func(base int, rows []row) {
		for _, r := range rows {
			for i := r.first; i <= r.last; i++ {
				table[base+i] = opInfo{imm: r.imm, align: r.align, lanes: r.lanes, pop: types(r.pop), push: types(r.push)}
			}
		}
	}
	fill(0, plainOps)
	fill(opsMisc, miscOps)
	fill(opsVec, vecOps)
	for _, f := range forbiddenOps {
		for i := f.first; i <= f.last; i++ {
			table[i] = opInfo{imm: immForbidden, feature: f.feature}
		}
	}
	return table
}

var forbiddenOps = []struct {
	first, last int
	feature     string
}{
	{0x06, 0x0a, "exception handling"},
	{0x12, 0x13, "tail calls"},
	{0x14, 0x15, "typed function references"},
	{0x18, 0x19, "exception handling"},
	{0x1f, 0x1f, "exception handling"},
	{0xd3, 0xd6, "typed function references and garbage collection"},
	{0xfb, 0xfb, "garbage collection"},
	{0xfe, 0xfe, "threads"},
}

var plainOps = []row{
	{first: 0x00, last: 0x01}, // unreachable, nop
	{first: 0x02, last: 0x04, imm: immBlock},
	{first: 0x05, last: 0x05}, // else
	{first: 0x0b, last: 0x0b}, // end
	{first: 0x0c, last: 0x0d, imm: immLabel},
	{first: 0x0e, last: 0x0e, imm: immLabels},
	{first: 0x0f, last: 0x0f}, // return
	{first: 0x10, last: 0x10, imm: immFunc},
	{first: 0x11, last: 0x11, imm: immIndirect},
	{first: 0x1a, last: 0x1b}, // drop, select
	{first: 0x1c, last: 0x1c, imm: immTypes},
	{first: 0x20, last: 0x22, imm: immLocal},
	{first: 0x23, last: 0x24, imm: immGlobal},
	{first: 0x25, last: 0x26, imm: immTable},
	// Loads.
	{0x28, 0x28, immMemArg, 2, 0, "i", "i"},
	{0x29, 0x29, immMemArg, 3, 0, "i", "I"},
	{0x2a, 0x2a, immMemArg, 2, 0, "i", "f"},
	{0x2b, 0x2b, immMemArg, 3, 0, "i", "F"},
	{0x2c, 0x2d, immMemArg, 0, 0, "i", "i"},
	{0x2e, 0x2f, immMemArg, 1, 0, "i", "i"},
	{0x30, 0x31, immMemArg, 0, 0, "i", "I"},
	{0x32, 0x33, immMemArg, 1, 0, "i", "I"},
	{0x34, 0x35, immMemArg, 2, 0, "i", "I"},
	// Stores.
	{0x36, 0x36, immMemArg, 2, 0, "ii", ""},
	{0x37, 0x37, immMemArg, 3, 0, "iI", ""},
	{0x38, 0x38, immMemArg, 2, 0, "if", ""},
	{0x39, 0x39, immMemArg, 3, 0, "iF", ""},
	{0x3a, 0x3a, immMemArg, 0, 0, "ii", ""},
	{0x3b, 0x3b, immMemArg, 1, 0, "ii", ""},
	{0x3c, 0x3c, immMemArg, 0, 0, "iI", ""},
	{0x3d, 0x3d, immMemArg, 1, 0, "iI", ""},
	{0x3e, 0x3e, immMemArg, 2, 0, "iI", ""},
	{0x3f, 0x3f, immMemory, 0, 0, "", "i"},
	{0x40, 0x40, immMemory, 0, 0, "i", "i"},
	{0x41, 0x41, immI32, 0, 0, "", "i"},
	{0x42, 0x42, immI64, 0, 0, "", "I"},
	{0x43, 0x43, immF32, 0, 0, "", "f"},
	{0x44, 0x44, immF64, 0, 0, "", "F"},
	// Comparisons.
	{0x45, 0x45, immNone, 0, 0, "i", "i"},
	{0x46, 0x4f, immNone, 0, 0, "ii", "i"},
	{0x50, 0x50, immNone, 0, 0, "I", "i"},
	{0x51, 0x5a, immNone, 0, 0, "II", "i"},
	{0x5b, 0x60, immNone, 0, 0, "ff", "i"},
	{0x61, 0x66, immNone, 0, 0, "FF", "i"},
	// Arithmetic.
	{0x67, 0x69, immNone, 0, 0, "i", "i"},
	{0x6a, 0x78, immNone, 0, 0, "ii", "i"},
	{0x79, 0x7b, immNone, 0, 0, "I", "I"},
	{0x7c, 0x8a, immNone, 0, 0, "II", "I"},
	{0x8b, 0x91, immNone, 0, 0, "f", "f"},
	{0x92, 0x98, immNone, 0, 0, "ff", "f"},
	{0x99, 0x9f, immNone, 0, 0, "F", "F"},
	{0xa0, 0xa6, immNone, 0, 0, "FF", "F"},
	// Conversions.
	{0xa7, 0xa7, immNone, 0, 0, "I", "i"},
	{0xa8, 0xa9, immNone, 0, 0, "f", "i"},
	{0xaa, 0xab, immNone, 0, 0, "F", "i"},
	{0xac, 0xad, immNone, 0, 0, "i", "I"},
	{0xae, 0xaf, immNone, 0, 0, "f", "I"},
	{0xb0, 0xb1, immNone, 0, 0, "F", "I"},
	{0xb2, 0xb3, immNone, 0, 0, "i", "f"},
	{0xb4, 0xb5, immNone, 0, 0, "I", "f"},
	{0xb6, 0xb6, immNone, 0, 0, "F", "f"},
	{0xb7, 0xb8, immNone, 0, 0, "i", "F"},
	{0xb9, 0xba, immNone, 0, 0, "I", "F"},
	{0xbb, 0xbb, immNone, 0, 0, "f", "F"},
	{0xbc, 0xbc, immNone, 0, 0, "f", "i"},
	{0xbd, 0xbd, immNone, 0, 0, "F", "I"},
	{0xbe, 0xbe, immNone, 0, 0, "i", "f"},
	{0xbf, 0xbf, immNone, 0, 0, "I", "F"},
	{0xc0, 0xc1, immNone, 0, 0, "i", "i"},
	{0xc2, 0xc4, immNone, 0, 0, "I", "I"},
	{first: 0xd0, last: 0xd0, imm: immRefType},
	{first: 0xd1, last: 0xd1}, // ref.is_null
	{first: 0xd2, last: 0xd2, imm: immFunc},
}

var miscOps = []row{
	{0, 1, immNone, 0, 0, "f", "i"},
	{2, 3, immNone, 0, 0, "F", "i"},
	{4, 5, immNone, 0, 0, "f", "I"},
	{6, 7, immNone, 0, 0, "F", "I"},
	{8, 8, immMemInit, 0, 0, "iii", ""},
	{first: 9, last: 9, imm: immData},
	{10, 10, immMemCopy, 0, 0, "iii", ""},
	{11, 11, immMemory, 0, 0, "iii", ""},
	{12, 12, immTableInit, 0, 0, "iii", ""},
	{first: 13, last: 13, imm: immElem},
	{14, 14, immTableCopy, 0, 0, "iii", ""},
	{first: 15, last: 17, imm: immTable}, // table.grow, size, fill
}

var vecOps = []row{
	{0, 0, immMemArg, 4, 0, "i", "v"},
	{1, 6, immMemArg, 3, 0, "i", "v"},
	{7, 7, immMemArg, 0, 0, "i", "v"},
	{8, 8, immMemArg, 1, 0, "i", "v"},
	{9, 9, immMemArg, 2, 0, "i", "v"},
	{10, 10, immMemArg, 3, 0, "i", "v"},
	{11, 11, immMemArg, 4, 0, "iv", ""},
	{12, 12, immV128, 0, 0, "", "v"},
	{13, 13, immLanes, 0, 32, "vv", "v"},
	{14, 14, immNone, 0, 0, "vv", "v"},
	{15, 17, immNone, 0, 0, "i", "v"},
	{18, 18, immNone, 0, 0, "I", "v"},
	{19, 19, immNone, 0, 0, "f", "v"},
	{20, 20, immNone, 0, 0, "F", "v"},
	{21, 22, immLane, 0, 16, "v", "i"},
	{23, 23, immLane, 0, 16, "vi", "v"},
	{24, 25, immLane, 0, 8, "v", "i"},
	{26, 26, immLane, 0, 8, "vi", "v"},
	{27, 27, immLane, 0, 4, "v", "i"},
	{28, 28, immLane, 0, 4, "vi", "v"},
	{29, 29, immLane, 0, 2, "v", "I"},
	{30, 30, immLane, 0, 2, "vI", "v"},
	{31, 31, immLane, 0, 4, "v", "f"},
	{32, 32, immLane, 0, 4, "vf", "v"},
	{33, 33, immLane, 0, 2, "v", "F"},
	{34, 34, immLane, 0, 2, "vF", "v"},
	{35, 76, immNone, 0, 0, "vv", "v"}, // comparisons
	{77, 77, immNone, 0, 0, "v", "v"},
	{78, 81, immNone, 0, 0, "vv", "v"},
	{82, 82, immNone, 0, 0, "vvv", "v"},
	{83, 83, immNone, 0, 0, "v", "i"},
	{84, 84, immMemLane, 0, 16, "iv", "v"},
	{85, 85, immMemLane, 1, 8, "iv", "v"},
	{86, 86, immMemLane, 2, 4, "iv", "v"},
	{87, 87, immMemLane, 3, 2, "iv", "v"},
	{88, 88, immMemLane, 0, 16, "iv", ""},
	{89, 89, immMemLane, 1, 8, "iv", ""},
	{90, 90, immMemLane, 2, 4, "iv", ""},
	{91, 91, immMemLane, 3, 2, "iv", ""},
	{92, 92, immMemArg, 2, 0, "i", "v"},
	{93, 93, immMemArg, 3, 0, "i", "v"},
	{94, 98, immNone, 0, 0, "v", "v"},
	{99, 100, immNone, 0, 0, "v", "i"},
	{101, 102, immNone, 0, 0, "vv", "v"},
	{103, 106, immNone, 0, 0, "v", "v"},
	{107, 109, immNone, 0, 0, "vi", "v"},
	{110, 115, immNone, 0, 0, "vv", "v"},
	{116, 117, immNone, 0, 0, "v", "v"},
	{118, 121, immNone, 0, 0, "vv", "v"},
	{122, 122, immNone, 0, 0, "v", "v"},
	{123, 123, immNone, 0, 0, "vv", "v"},
	{124, 129, immNone, 0, 0, "v", "v"},
	{130, 130, immNone, 0, 0, "vv", "v"},
	{131, 132, immNone, 0, 0, "v", "i"},
	{133, 134, immNone, 0, 0, "vv", "v"},
	{135, 138, immNone, 0, 0, "v", "v"},
	{139, 141, immNone, 0, 0, "vi", "v"},
	{142, 147, immNone, 0, 0, "vv", "v"},
	{148, 148, immNone, 0, 0, "v", "v"},
	{149, 153, immNone, 0, 0, "vv", "v"},
	{155, 159, immNone, 0, 0, "vv", "v"},
	{160, 161, immNone, 0, 0, "v", "v"},
	{163, 164, immNone, 0, 0, "v", "i"},
	{167, 170, immNone, 0, 0, "v", "v"},
	{171, 173, immNone, 0, 0, "vi", "v"},
	{174, 174, immNone, 0, 0, "vv", "v"},
	{177, 177, immNone, 0, 0, "vv", "v"},
	{181, 186, immNone, 0, 0, "vv", "v"},
	{188, 191, immNone, 0, 0, "vv", "v"},
	{192, 193, immNone, 0, 0, "v", "v"},
	{195, 196, immNone, 0, 0, "v", "i"},
	{199, 202, immNone, 0, 0, "v", "v"},
	{203, 205, immNone, 0, 0, "vi", "v"},
	{206, 206, immNone, 0, 0, "vv", "v"},
	{209, 209, immNone, 0, 0, "vv", "v"},
	{213, 223, immNone, 0, 0, "vv", "v"},
	{224, 225, immNone, 0, 0, "v", "v"},
	{227, 227, immNone, 0, 0, "v", "v"},
	{228, 235, immNone, 0, 0, "vv", "v"},
	{236, 237, immNone, 0, 0, "v", "v"},
	{239, 239, immNone, 0, 0, "v", "v"},
	{240, 247, immNone, 0, 0, "vv", "v"},
	{248, 255, immNone, 0, 0, "v", "v"},
}

// Signature returns what an instruction takes, leaves and carries; ok is false for
// instructions whose types depend on more than the opcode, and for opcodes that do not
// exist. It is for tests that make up modules.
func (op Op) Signature() (s Signature, ok bool) {
	info := op.info()
	if info.pop == nil && info.push == nil {
		return s, false
	}
	return Signature{info.pop, info.push, info.imm == immMemArg || info.imm == immMemLane, int(info.align), int(info.lanes)}, true
}

// Signature is what a fixed instruction takes and leaves.
type Signature struct {
	Pop, Push []ValType
	Memory    bool // an alignment of at most 2^Align and an offset follow
	Align     int
	Lanes     int // a lane below this number follows, if it is not 0
}
