package wasmtest

import (
	"fmt"
	"math/rand/v2"

	"ganglion/plugins/wasm"
)

// Random returns a valid module made up from a seed: the same one for the same seed. It
// has a memory, a table of functions, mutable globals "g0", "g1", …, and exported
// functions "f0", "f1", … of number types. The functions use all of control flow (also
// dead code, and blocks that take and leave several values), calls of all kinds, memory,
// globals, bulk and vector instructions. They may loop for ever and may trap. It imports
// "host.tick", of type [i32] → [i32].
func Random(seed uint64) []byte {
	g := &random{r: rand.New(rand.NewPCG(seed, 0x5eed))}
	return g.module()
}

type signature struct{ params, results []wasm.ValType }

type random struct {
	r *rand.Rand
	b Builder

	funcs   []signature // host.tick first
	globals []wasm.ValType

	// The function that is being made.
	code   []byte
	locals []wasm.ValType // parameters, then the rest
	labels [][]wasm.ValType
	self   signature
	left   int // how much more may be made
}

var (
	numbers = []wasm.ValType{wasm.I32, wasm.I64, wasm.F32, wasm.F64}
	values  = []wasm.ValType{wasm.I32, wasm.I64, wasm.F32, wasm.F64, wasm.V128}
)

func (g *random) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *random) oneOf(t []wasm.ValType) wasm.ValType { return t[g.r.IntN(len(t))] }

func (g *random) list(of []wasm.ValType, most int) (t []wasm.ValType) {
	for range g.r.IntN(most + 1) {
		t = append(t, g.oneOf(of))
	}
	return t
}

const (
	tableSize = 8
	dataSize  = 100
)

func (g *random) module() []byte {
	g.funcs = []signature{{[]wasm.ValType{wasm.I32}, []wasm.ValType{wasm.I32}}}
	g.b.ImportFunc("host", "tick", g.funcs[0].params, g.funcs[0].results)
	g.b.Memory(uint(1 + g.r.IntN(2)))
	g.b.Table(tableSize)
	for i := range 1 + g.r.IntN(4) {
		t := g.oneOf(numbers)
		g.globals = append(g.globals, t)
		g.b.Global(t, true, g.constant(t))
		g.b.Export(fmt.Sprint("g", i), wasm.KindGlobal, uint(i))
	}
	g.b.Raw(wasm.SectionDataCount, Code(uint(2)))
	g.b.Data(Code(byte(1), string(make([]byte, dataSize))))
	g.b.Data(Code(byte(1), "some bytes"))
	n := 1 + g.r.IntN(5)
	for i := range n {
		s := signature{g.list(numbers, 3), g.list(numbers, 2)}
		internal := g.chance(25)
		if internal {
			s = signature{g.list(values, 3), g.list(values, 3)}
		}
		g.function(s)
		if !internal {
			g.b.Export(fmt.Sprint("f", i), wasm.KindFunc, uint(len(g.funcs)-1))
		}
	}
	entries := Code(byte(0), wasm.OpI32Const, 0, wasm.OpEnd, uint(tableSize))
	for range tableSize {
		entries = Code(entries, uint(g.r.IntN(len(g.funcs))))
	}
	g.b.Element(entries)
	g.b.Element(Code(byte(1), byte(0), uint(1), uint(0))) // passive
	if g.chance(20) {
		g.b.Custom("name", Code(byte(0), uint(2), "m"))
	}
	return g.b.Bytes()
}

func (g *random) function(s signature) {
	own := g.list(values, 5)
	if g.chance(3) {
		for range 40 {
			own = append(own, g.oneOf(values))
		}
	}
	g.self = s
	g.locals = append(append([]wasm.ValType(nil), s.params...), own...)
	g.labels = [][]wasm.ValType{s.results}
	g.code = nil
	g.left = 5 + g.r.IntN(60)
	if g.chance(10) {
		g.left *= 8
	}
	g.funcs = append(g.funcs, s) // it may call itself
	for range 1 + g.r.IntN(6) {
		g.statement(0)
	}
	g.all(s.results, 0)
	if g.chance(10) {
		g.emit(wasm.OpReturn)
	}
	own = append(own, wasm.F32, wasm.F64, wasm.V128)
	g.b.Func(s.params, s.results, own, g.code)
}

func (g *random) emit(parts ...any) { g.code = append(g.code, Code(parts...)...) }

// all makes a value of each type.
func (g *random) all(t []wasm.ValType, depth int) {
	for _, t := range t {
		g.value(t, depth)
	}
}

// constant returns the instruction for a number, often one at an edge.
func (g *random) constant(t wasm.ValType) []byte {
	edges := []int64{0, 1, -1, 2, 7, 63, 64, 255, 65535, 65536, 1 << 31, 1<<31 - 1, -1 << 31, -1 << 63, 1<<63 - 1}
	n := edges[g.r.IntN(len(edges))]
	if g.chance(40) {
		n = int64(g.r.Uint64())
	}
	bits := func(size int) []byte {
		out := make([]byte, size)
		for i := range out {
			out[i] = byte(g.r.Uint32())
		}
		return out
	}
	switch t {
	case wasm.I32:
		return Code(wasm.OpI32Const, int(int32(n)))
	case wasm.I64:
		return Code(wasm.OpI64Const, int(n))
	case wasm.F32:
		return Code(wasm.OpF32Const, Code(bits(3), byte(0x30+g.r.IntN(0x20))))
	case wasm.F64:
		return Code(wasm.OpF64Const, Code(bits(7), byte(0x30+g.r.IntN(0x20))))
	}
	return Code(wasm.OpV128Const, bits(16))
}
