package wasmtest

import (
	"slices"

	"ganglion/plugins/wasm"
)

const maxDepth = 8

// makers lists, for each type, the instructions that leave one value of it and nothing
// else; takers those that leave nothing.
var makers, takers = func() (map[wasm.ValType][]wasm.Op, []wasm.Op) {
	by := map[wasm.ValType][]wasm.Op{}
	var none []wasm.Op
	for _, base := range []wasm.Op{0, 0xfc00, 0xfd00} {
		for i := range wasm.Op(256) {
			op := base + i
			s, ok := op.Signature()
			if !ok || op >= wasm.OpMemoryInit && op <= wasm.OpTableCopy || op >= wasm.OpI32Const && op <= wasm.OpF64Const || op == wasm.OpV128Const {
				continue
			}
			if len(s.Push) == 1 {
				by[s.Push[0]] = append(by[s.Push[0]], op)
			} else {
				none = append(none, op)
			}
		}
	}
	return by, none
}()

// value makes code that leaves a value of type t.
func (g *random) value(t wasm.ValType, depth int) {
	g.left--
	if g.left <= 0 || depth >= maxDepth {
		g.leaf(t)
		return
	}
	switch n := g.r.IntN(100); {
	case n < 20:
		g.leaf(t)
	case n < 70:
		g.instruction(makers[t][g.r.IntN(len(makers[t]))], depth)
	case n < 85:
		g.block([]wasm.ValType{t}, depth)
	case n < 90:
		g.value(t, depth+1)
		g.value(t, depth+1)
		g.value(wasm.I32, depth+1)
		if g.chance(50) {
			g.emit(wasm.OpSelect)
		} else {
			g.emit(wasm.OpSelectT, uint(1), t)
		}
	case n < 97:
		g.call([]wasm.ValType{t}, depth)
	default:
		g.value(t, depth+1)
		if i, ok := g.local(t); ok {
			g.emit(wasm.OpLocalTee, i)
		}
	}
}

func (g *random) local(t wasm.ValType) (uint, bool) {
	if len(g.locals) == 0 {
		return 0, false
	}
	from := g.r.IntN(len(g.locals))
	for i := range g.locals {
		if j := (from + i) % len(g.locals); g.locals[j] == t {
			return uint(j), true
		}
	}
	return 0, false
}

func (g *random) leaf(t wasm.ValType) {
	if i, ok := g.local(t); ok && g.chance(60) {
		g.emit(wasm.OpLocalGet, i)
		return
	}
	if i := slices.Index(g.globals, t); i >= 0 && g.chance(40) {
		g.emit(wasm.OpGlobalGet, uint(i))
		return
	}
	g.emit(g.constant(t))
}

// instruction makes the operands of a fixed instruction, and then the instruction.
func (g *random) instruction(op wasm.Op, depth int) {
	s, _ := op.Signature()
	if s.Memory && g.chance(90) { // an address that exists
		g.value(wasm.I32, depth+1)
		g.emit(wasm.OpI32Const, 0x7fff, wasm.Op(0x71))
		g.all(s.Pop[1:], depth+1)
	} else {
		g.all(s.Pop, depth+1)
	}
	if op == wasm.OpMemoryGrow && g.chance(90) {
		g.emit(wasm.OpI32Const, 3, wasm.Op(0x71)) // and: few pages
	}
	g.bare(op, s)
	g.canonical(op)
}

// canonical makes one NaN of all that an instruction may leave: which bits of a NaN it
// leaves is an engine's own affair, and what is made here has to be the same on all.
func (g *random) canonical(op wasm.Op) {
	n := len(g.locals) // the three that function adds for this
	switch {
	case op >= 0x91 && op <= 0x97 || op == 0xb6:
		t := uint(n)
		g.emit(wasm.OpLocalTee, t, wasm.OpF32Const, []byte{0, 0, 0xc0, 0x7f}, wasm.OpLocalGet, t, wasm.OpLocalGet, t, wasm.Op(0x5b), wasm.OpSelect)
	case op >= 0x9f && op <= 0xa5 || op == 0xbb:
		t := uint(n + 1)
		g.emit(wasm.OpLocalTee, t, wasm.OpF64Const, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, wasm.OpLocalGet, t, wasm.OpLocalGet, t, wasm.Op(0x61), wasm.OpSelect)
	case op >= 0xfd00+227 && op <= 0xfd00+233 || op == 0xfd00+94:
		t, nan := uint(n+2), []byte{0, 0, 0xc0, 0x7f}
		g.emit(wasm.OpLocalTee, t, wasm.OpV128Const, nan, nan, nan, nan, wasm.OpLocalGet, t, wasm.OpLocalGet, t, wasm.Op(0xfd41), wasm.Op(0xfd52))
	case op >= 0xfd00+239 && op <= 0xfd00+245 || op == 0xfd00+95:
		t, nan := uint(n+2), []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}
		g.emit(wasm.OpLocalTee, t, wasm.OpV128Const, nan, nan, wasm.OpLocalGet, t, wasm.OpLocalGet, t, wasm.Op(0xfd47), wasm.Op(0xfd52))
	}
}

// bare emits a fixed instruction with random immediates.
func (g *random) bare(op wasm.Op, s wasm.Signature) {
	g.emit(op)
	switch {
	case s.Memory:
		g.emit(uint(g.r.IntN(s.Align+1)), uint(g.r.IntN(1<<g.r.IntN(16))))
		if s.Lanes > 0 {
			g.emit(byte(g.r.IntN(s.Lanes)))
		}
	case op == wasm.OpShuffle:
		for range 16 {
			g.emit(byte(g.r.IntN(32)))
		}
	case s.Lanes > 0:
		g.emit(byte(g.r.IntN(s.Lanes)))
	case op == wasm.OpMemorySize || op == wasm.OpMemoryGrow || op == wasm.OpMemoryFill:
		g.emit(byte(0))
	}
}

// call calls a function and keeps those results that are wanted: the last one if it is
// of the type, otherwise a fresh value.
func (g *random) call(want []wasm.ValType, depth int) {
	i := g.r.IntN(len(g.funcs))
	s := g.funcs[i]
	g.all(s.params, depth+1)
	if g.chance(30) {
		if g.chance(70) {
			g.emit(wasm.OpI32Const, g.r.IntN(tableSize))
		} else {
			g.value(wasm.I32, depth+1)
		}
		g.emit(wasm.OpCallIndirect, g.b.Type(s.params, s.results), uint(0))
	} else {
		g.emit(wasm.OpCall, uint(i))
	}
	g.settle(s.results, want, depth)
}

// settle turns the values on the stack into the wanted ones.
func (g *random) settle(have, want []wasm.ValType, depth int) {
	if slices.Equal(have, want) {
		return
	}
	for range have {
		g.emit(wasm.OpDrop)
	}
	g.all(want, depth+1)
}

func (g *random) label(carries []wasm.ValType) func() {
	g.labels = append(g.labels, carries)
	return func() { g.labels = g.labels[:len(g.labels)-1] }
}

// blockType emits the type of a block, in the short form where there is one.
func (g *random) blockType(params, results []wasm.ValType) {
	switch {
	case len(params) == 0 && len(results) == 0:
		g.emit(byte(0x40))
	case len(params) == 0 && len(results) == 1:
		g.emit(results[0])
	default:
		g.emit(int(g.b.Type(params, results)))
	}
}

// block makes a block, loop or if that leaves the wanted values.
func (g *random) block(want []wasm.ValType, depth int) {
	params := g.list(values, 2)
	results := want
	if g.chance(20) {
		results = append(g.list(values, 2), want...)
	}
	g.all(params, depth+1)
	switch g.r.IntN(3) {
	case 0:
		g.emit(wasm.OpBlock)
		g.body(params, results, results, depth)
	case 1:
		g.emit(wasm.OpLoop)
		g.body(params, results, params, depth)
	default:
		g.value(wasm.I32, depth+1)
		g.emit(wasm.OpIf)
		g.blockType(params, results)
		done := g.label(results)
		g.inside(params, results, depth)
		g.emit(wasm.OpElse)
		g.inside(params, results, depth)
		done()
		g.emit(wasm.OpEnd)
	}
	g.settle(results, want, depth)
}

func (g *random) body(params, results, carries []wasm.ValType, depth int) {
	g.blockType(params, results)
	done := g.label(carries)
	g.inside(params, results, depth)
	done()
	g.emit(wasm.OpEnd)
}

// inside makes what stands in a block: it takes the parameters and leaves the results.
func (g *random) inside(params, results []wasm.ValType, depth int) {
	for i := len(params) - 1; i >= 0; i-- {
		if l, ok := g.local(params[i]); ok {
			g.emit(wasm.OpLocalSet, l)
		} else {
			g.emit(wasm.OpDrop)
		}
	}
	for range g.r.IntN(4) {
		g.statement(depth + 1)
	}
	g.all(results, depth+1)
}

// statement makes code that leaves the stack as it was. It may end in code that is never
// reached.
func (g *random) statement(depth int) {
	g.left--
	if g.left <= 0 || depth >= maxDepth {
		g.emit(wasm.OpNop)
		return
	}
	switch n := g.r.IntN(100); {
	case n < 20 && len(g.locals) > 0:
		i := g.r.IntN(len(g.locals))
		g.value(g.locals[i], depth+1)
		g.emit(wasm.OpLocalSet, uint(i))
	case n < 30:
		i := g.r.IntN(len(g.globals))
		g.value(g.globals[i], depth+1)
		g.emit(wasm.OpGlobalSet, uint(i))
	case n < 45:
		g.instruction(takers[g.r.IntN(len(takers))], depth)
	case n < 60:
		g.block(nil, depth)
	case n < 68:
		g.loop(depth)
	case n < 76:
		g.bulk(depth)
	case n < 82:
		g.call(nil, depth)
	case n < 94:
		g.branch(depth)
	case n < 96:
		g.value(g.oneOf(values), depth+1)
		g.emit(wasm.OpDrop)
	default:
		g.references()
	}
}

// loop makes a loop that counts: most of those made blindly run once or for ever.
func (g *random) loop(depth int) {
	i, ok := g.local(wasm.I32)
	if !ok {
		return
	}
	if g.chance(80) {
		g.emit(wasm.OpI32Const, 1+g.r.IntN(20), wasm.OpLocalSet, i)
	}
	g.emit(wasm.OpLoop, byte(0x40))
	done := g.label(nil)
	for range g.r.IntN(4) {
		g.statement(depth + 1)
	}
	g.emit(wasm.OpLocalGet, i, wasm.OpI32Const, 1, wasm.Op(0x6b), wasm.OpLocalTee, i, wasm.OpBrIf, uint(0))
	done()
	g.emit(wasm.OpEnd)
}

func (g *random) bulk(depth int) {
	small := func() {
		if g.chance(80) {
			g.emit(wasm.OpI32Const, g.r.IntN(1<<g.r.IntN(15)))
		} else {
			g.value(wasm.I32, depth+1)
		}
	}
	small()
	small()
	small()
	switch g.r.IntN(5) {
	case 0, 1:
		g.emit(wasm.OpMemoryFill, byte(0))
	case 2:
		g.emit(wasm.OpMemoryCopy, byte(0), byte(0))
	case 3:
		g.emit(wasm.OpMemoryInit, uint(g.r.IntN(2)), byte(0))
	default:
		g.emit(wasm.OpDrop, wasm.OpDrop, wasm.OpDrop, wasm.OpI32Const, g.r.IntN(tableSize), wasm.OpI32Const, g.r.IntN(tableSize), wasm.OpI32Const, g.r.IntN(4))
		g.emit(wasm.OpTableCopy, uint(0), uint(0))
	}
}

// branch makes one of the instructions that leave a place, and often dead code behind.
func (g *random) branch(depth int) {
	to := g.r.IntN(len(g.labels))
	carries := g.labels[len(g.labels)-1-to]
	switch g.r.IntN(8) {
	case 0, 1, 2, 3:
		g.all(carries, depth+1)
		g.value(wasm.I32, depth+1)
		g.emit(wasm.OpBrIf, uint(to))
		for range carries {
			g.emit(wasm.OpDrop)
		}
		return
	case 4:
		g.all(carries, depth+1)
		g.emit(wasm.OpBr, uint(to))
	case 5:
		g.all(carries, depth+1)
		g.value(wasm.I32, depth+1)
		var same []uint
		for i := range g.labels {
			if slices.Equal(g.labels[len(g.labels)-1-i], carries) {
				same = append(same, uint(i))
			}
		}
		n := g.r.IntN(5)
		g.emit(wasm.OpBrTable, uint(n))
		for range n + 1 {
			g.emit(same[g.r.IntN(len(same))])
		}
	case 6:
		if g.chance(70) {
			return
		}
		g.all(g.self.results, depth+1)
		g.emit(wasm.OpReturn)
	default:
		if g.chance(95) {
			return
		}
		g.emit(wasm.OpUnreachable)
	}
	for range g.r.IntN(4) {
		g.dead(depth)
	}
}

// dead makes code behind a branch: its operands come from nowhere.
func (g *random) dead(depth int) {
	t := g.oneOf(values)
	switch g.r.IntN(7) {
	case 0:
		g.emit(wasm.OpLoop, byte(0x40), wasm.OpBr, uint(0), wasm.OpEnd)
	case 1:
		g.emit(wasm.OpIf, byte(0x40), wasm.OpNop, wasm.OpElse, wasm.OpUnreachable, wasm.OpEnd)
	case 2:
		g.emit(wasm.OpMemoryFill, byte(0), wasm.OpMemoryGrow, byte(0), wasm.OpDrop)
	case 3:
		g.statement(depth + 1)
	case 4:
		g.emit(wasm.OpBlock, t, wasm.OpUnreachable, wasm.OpEnd, wasm.OpDrop)
	default:
		op := makers[t][g.r.IntN(len(makers[t]))]
		s, _ := op.Signature()
		g.bare(op, s)
		g.emit(wasm.OpDrop)
	}
}

// references uses the instructions on references and tables.
func (g *random) references() {
	switch g.r.IntN(5) {
	case 0:
		g.emit(wasm.OpRefNull, wasm.FuncRef, wasm.OpRefIsNull, wasm.OpDrop)
	case 1:
		g.emit(wasm.OpI32Const, g.r.IntN(tableSize), wasm.OpI32Const, g.r.IntN(tableSize), wasm.OpTableGet, uint(0), wasm.OpTableSet, uint(0))
	case 2:
		g.emit(wasm.OpTableSize, uint(0), wasm.OpDrop)
	case 3:
		g.emit(wasm.OpDataDrop, uint(g.r.IntN(2)))
	default:
		g.emit(wasm.OpI32Const, g.r.IntN(tableSize), wasm.OpI32Const, 0, wasm.OpI32Const, 1, wasm.OpTableInit, uint(1), uint(0))
	}
}
