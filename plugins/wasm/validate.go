package wasm

// maxStack bounds the operand stack of a function: calls with many results could
// otherwise pile up a thousand values for every two bytes.
const maxStack = 1 << 16

// maxBlocks bounds how deep blocks nest: each open one costs memory here and, worse, in
// every compiler.
const maxBlocks = 1 << 16

// Validate decides whether a module is valid by the rules of WebAssembly 2.0. A module
// that passes has every index in range and every instruction on the right types; the
// rewriter of plugins/meter relies on it. A module may be refused for exceeding 65,536
// operands or nested blocks in a function.
func Validate(m *Module) error {
	v := &validator{m: m, funcRefs: make([]bool, len(m.funcSpace))}
	if err := v.module(); err != nil {
		return err
	}
	for i := range m.Bodies {
		if err := v.function(i); err != nil {
			return err
		}
	}
	return nil
}

// A validator holds what the functions of a module share. Its stacks are reused.
type validator struct {
	m        *Module
	funcRefs []bool // functions that ref.func may name

	locals []ValType // parameters, then locals
	vals   []ValType
	ctrls  []frame
	runs   []LocalRun
	in     Instr
}

// A frame is an open block. Its parameters and results are parts of the module's types
// or of one.
type frame struct {
	op              Op
	params, results []ValType
	height          int // of vals when it was entered, without its parameters
	dead            bool
}

// one holds a list of one type for each type.
var one = func() (t [256][]ValType) {
	for i := range t {
		t[i] = []ValType{ValType(i)}
	}
	return t
}()

func invalid(at int, format string, args ...any) error {
	return fault(ErrInvalid, place(at), format, args...)
}

func (v *validator) module() error {
	m := v.m
	for _, t := range m.tableSpace {
		if t.HasMax && t.Max < t.Min {
			return fault(ErrInvalid, "table", "size minimum is greater than its maximum")
		}
	}
	for i := range m.Globals {
		g := &m.Globals[i]
		if err := v.constant(g.Init, g.Type); err != nil {
			return err
		}
	}
	if err := v.exports(); err != nil {
		return err
	}
	if m.HasStart {
		if int(m.Start) >= len(m.funcSpace) {
			return fault(ErrInvalid, "start", "unknown function %d", m.Start)
		}
		if t := m.FuncType(m.Start); len(t.Params)+len(t.Results) > 0 {
			return fault(ErrInvalid, "start", "function %d has parameters or results", m.Start)
		}
	}
	if err := v.elements(); err != nil {
		return err
	}
	for _, d := range m.Datas {
		if d.Mode != Active {
			continue
		}
		if int(d.Memory) >= len(m.memorySpace) {
			return invalid(d.Bytes.Start, "unknown memory %d", d.Memory)
		}
		if err := v.constant(d.Offset, I32); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) exports() error {
	m := v.m
	space := [...]int{KindFunc: len(m.funcSpace), KindTable: len(m.tableSpace), KindMemory: len(m.memorySpace), KindGlobal: len(m.globalSpace)}
	for _, e := range m.Exports {
		if int(e.Index) >= space[e.Kind] {
			return fault(ErrInvalid, "export", "%q: unknown %s %d", short(e.Name), e.Kind, e.Index)
		}
		if e.Kind == KindFunc {
			v.funcRefs[e.Index] = true
		}
	}
	return nil
}

func (v *validator) elements() error {
	m := v.m
	for i := range m.Elements {
		e := &m.Elements[i]
		if e.Mode == Active {
			if int(e.Table) >= len(m.tableSpace) {
				return invalid(e.Entries.Start, "unknown table %d", e.Table)
			}
			if m.tableSpace[e.Table].Elem != e.Type {
				return invalid(e.Entries.Start, "type mismatch: elements of %s for a table of %s", e.Type, m.tableSpace[e.Table].Elem)
			}
			if err := v.constant(e.Offset, I32); err != nil {
				return err
			}
		}
		r := reader{b: m.Bytes, pos: e.Entries.Start, end: e.Entries.End}
		for range e.Count {
			if err := v.constant(e.entry(&r), e.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// constant checks a constant expression, and notes the function that it names. Only
// imported globals may be read: those of the module do not have their values yet.
func (v *validator) constant(c ConstOp, want ValType) error {
	got := c.Type
	switch c.Op {
	case OpGlobalGet:
		if int(c.Index) >= v.m.imported[KindGlobal] {
			return invalid(c.At, "constant expression: unknown global %d", c.Index)
		}
		g := v.m.globalSpace[c.Index]
		if g.Mutable {
			return invalid(c.At, "constant expression required: global %d is mutable", c.Index)
		}
		got = g.Type
	case OpRefFunc:
		if int(c.Index) >= len(v.funcRefs) {
			return invalid(c.At, "unknown function %d", c.Index)
		}
		v.funcRefs[c.Index] = true
	}
	if got != want {
		return invalid(c.At, "type mismatch: constant of %s, %s is needed", got, want)
	}
	return nil
}

// function validates the body of function i of those that the module defines.
func (v *validator) function(i int) error {
	m, b := v.m, &v.m.Bodies[i]
	t := &m.Types[m.Funcs[i]]
	v.runs = m.runs(b, v.runs[:0])
	v.locals = append(v.locals[:0], t.Params...)
	for _, run := range v.runs {
		for range run.Count {
			v.locals = append(v.locals, run.Type)
		}
	}
	v.vals = v.vals[:0]
	v.ctrls = append(v.ctrls[:0], frame{op: OpBlock, results: t.Results})
	w := m.Walk(b.Code)
	for w.Next(&v.in) {
		if len(v.ctrls) == 0 {
			return invalid(v.in.Start, "instruction behind the end of the function")
		}
		if err := v.step(); err != nil {
			return err
		}
	}
	if err := w.Err(); err != nil {
		return err
	}
	if len(v.ctrls) > 0 {
		return fault(ErrMalformed, m.funcPlace(i), "%d blocks are not closed", len(v.ctrls))
	}
	return nil
}

func (v *validator) pushAll(list []ValType) error {
	if len(v.vals)+len(list) > maxStack {
		return fault(ErrLimit, place(v.in.Start), "more than %d operands", maxStack)
	}
	v.vals = append(v.vals, list...)
	return nil
}

// pop takes a value of any type.
func (v *validator) pop() (ValType, error) {
	f := &v.ctrls[len(v.ctrls)-1]
	if len(v.vals) == f.height {
		if f.dead {
			return unknown, nil
		}
		return unknown, invalid(v.in.Start, "type mismatch: %s finds no operand", v.in.Op)
	}
	t := v.vals[len(v.vals)-1]
	v.vals = v.vals[:len(v.vals)-1]
	return t, nil
}

func (v *validator) popType(want ValType) error {
	got, err := v.pop()
	if err != nil {
		return err
	}
	if got != want && got != unknown && want != unknown {
		return invalid(v.in.Start, "type mismatch: %s finds %s, %s is needed", v.in.Op, got, want)
	}
	return nil
}

func (v *validator) popAll(list []ValType) error {
	for i := len(list) - 1; i >= 0; i-- {
		if err := v.popType(list[i]); err != nil {
			return err
		}
	}
	return nil
}

// die marks the rest of the innermost block as dead.
func (v *validator) die() {
	f := &v.ctrls[len(v.ctrls)-1]
	v.vals = v.vals[:f.height]
	f.dead = true
}

// label returns the types that a branch to the label carries.
func (v *validator) label(n uint32) ([]ValType, error) {
	if int64(n) >= int64(len(v.ctrls)) {
		return nil, invalid(v.in.Start, "unknown label %d", n)
	}
	f := &v.ctrls[len(v.ctrls)-1-int(n)]
	if f.op == OpLoop {
		return f.params, nil
	}
	return f.results, nil
}

// block returns the types of a block.
func (m *Module) block(t BlockType) (params, results []ValType, ok bool) {
	switch {
	case t.Index >= len(m.Types):
		return nil, nil, false
	case t.Index >= 0:
		return m.Types[t.Index].Params, m.Types[t.Index].Results, true
	case t.Value != 0:
		return nil, one[t.Value], true
	}
	return nil, nil, true
}

// enter opens a block whose parameters are on the stack.
func (v *validator) enter() error {
	params, results, ok := v.m.block(v.in.Block)
	if !ok {
		return invalid(v.in.Start, "unknown type %d", v.in.Block.Index)
	}
	if len(v.ctrls) == maxBlocks {
		return fault(ErrLimit, place(v.in.Start), "more than %d nested blocks", maxBlocks)
	}
	if err := v.popAll(params); err != nil {
		return err
	}
	v.ctrls = append(v.ctrls, frame{op: v.in.Op, params: params, results: results, height: len(v.vals)})
	return v.pushAll(params)
}

// leave closes the innermost block, whose results must be on the stack and nothing else.
func (v *validator) leave() (frame, error) {
	f := v.ctrls[len(v.ctrls)-1]
	if err := v.popAll(f.results); err != nil {
		return f, err
	}
	if len(v.vals) != f.height {
		return f, invalid(v.in.Start, "type mismatch: %d values too many at the end of a block", len(v.vals)-f.height)
	}
	v.ctrls = v.ctrls[:len(v.ctrls)-1]
	return f, nil
}
