package wasm

import "slices"

// step checks one instruction against the stacks.
func (v *validator) step() error {
	in := &v.in
	info := in.Op.info()
	if info.pop != nil || info.push != nil {
		if err := v.spaces(info); err != nil {
			return err
		}
		if err := v.popAll(info.pop); err != nil {
			return err
		}
		return v.pushAll(info.push)
	}
	switch in.Op {
	case OpLocalGet, OpLocalSet, OpLocalTee:
		return v.local()
	case OpGlobalGet, OpGlobalSet:
		return v.global()
	case OpBlock, OpLoop, OpIf, OpElse, OpEnd, OpBr, OpBrIf, OpBrTable, OpReturn, OpUnreachable, OpNop:
		return v.control()
	case OpCall, OpCallIndirect:
		return v.call()
	case OpDrop:
		_, err := v.pop()
		return err
	case OpSelect, OpSelectT:
		return v.choose()
	case OpRefNull:
		return v.pushAll(one[in.Type])
	case OpRefIsNull:
		t, err := v.pop()
		if err != nil {
			return err
		}
		if !t.IsRef() && t != unknown {
			return invalid(in.Start, "type mismatch: ref.is_null of %s", t)
		}
		return v.pushAll(one[I32])
	case OpRefFunc:
		if int64(in.X) >= int64(len(v.funcRefs)) {
			return invalid(in.Start, "unknown function %d", in.X)
		}
		if !v.funcRefs[in.X] {
			return invalid(in.Start, "undeclared function reference to function %d", in.X)
		}
		return v.pushAll(one[FuncRef])
	case OpDataDrop:
		return v.dataSegment()
	}
	return v.table()
}

// spaces checks what instructions with a fixed signature refer to: memory and segments.
func (v *validator) spaces(info *opInfo) error {
	in := &v.in
	switch info.imm {
	case immMemArg, immMemLane, immMemory, immMemInit, immMemCopy:
		if len(v.m.memorySpace) == 0 {
			return invalid(in.Start, "unknown memory 0")
		}
	}
	switch in.Op {
	case OpMemoryInit:
		return v.dataSegment()
	case OpTableInit:
		t, err := v.tableType(in.Y)
		if err != nil {
			return err
		}
		if int64(in.X) >= int64(len(v.m.Elements)) {
			return invalid(in.Start, "unknown elem segment %d", in.X)
		}
		if e := v.m.Elements[in.X].Type; e != t {
			return invalid(in.Start, "type mismatch: elements of %s for a table of %s", e, t)
		}
	case OpTableCopy:
		to, err := v.tableType(in.X)
		if err != nil {
			return err
		}
		from, err := v.tableType(in.Y)
		if err != nil {
			return err
		}
		if to != from {
			return invalid(in.Start, "type mismatch: copy from a table of %s to one of %s", from, to)
		}
	}
	return nil
}

func (v *validator) dataSegment() error {
	if !v.m.HasDataCount {
		return fault(ErrMalformed, place(v.in.Start), "data count section required")
	}
	if v.in.X >= v.m.DataCount {
		return invalid(v.in.Start, "unknown data segment %d", v.in.X)
	}
	return nil
}

func (v *validator) tableType(i uint32) (ValType, error) {
	if int64(i) >= int64(len(v.m.tableSpace)) {
		return 0, invalid(v.in.Start, "unknown table %d", i)
	}
	return v.m.tableSpace[i].Elem, nil
}

func (v *validator) local() error {
	in := &v.in
	if int64(in.X) >= int64(len(v.locals)) {
		return invalid(in.Start, "unknown local %d", in.X)
	}
	t := v.locals[in.X]
	if in.Op != OpLocalGet {
		if err := v.popType(t); err != nil {
			return err
		}
	}
	if in.Op != OpLocalSet {
		return v.pushAll(one[t])
	}
	return nil
}

func (v *validator) global() error {
	in := &v.in
	if int64(in.X) >= int64(len(v.m.globalSpace)) {
		return invalid(in.Start, "unknown global %d", in.X)
	}
	g := v.m.globalSpace[in.X]
	if in.Op == OpGlobalGet {
		return v.pushAll(one[g.Type])
	}
	if !g.Mutable {
		return invalid(in.Start, "global %d is immutable", in.X)
	}
	return v.popType(g.Type)
}

func (v *validator) call() error {
	in := &v.in
	var t *FuncType
	if in.Op == OpCall {
		if int64(in.X) >= int64(len(v.m.funcSpace)) {
			return invalid(in.Start, "unknown function %d", in.X)
		}
		t = v.m.FuncType(in.X)
	} else {
		elem, err := v.tableType(in.Y)
		if err != nil {
			return err
		}
		if elem != FuncRef {
			return invalid(in.Start, "type mismatch: call_indirect of a table of %s", elem)
		}
		if int64(in.X) >= int64(len(v.m.Types)) {
			return invalid(in.Start, "unknown type %d", in.X)
		}
		if err := v.popType(I32); err != nil {
			return err
		}
		t = &v.m.Types[in.X]
	}
	if err := v.popAll(t.Params); err != nil {
		return err
	}
	return v.pushAll(t.Results)
}

// choose checks the two forms of select: the one without a type is for numbers and
// vectors alone.
func (v *validator) choose() error {
	in := &v.in
	if err := v.popType(I32); err != nil {
		return err
	}
	if in.Op == OpSelectT {
		if err := v.popAll([]ValType{in.Type, in.Type}); err != nil {
			return err
		}
		return v.pushAll(one[in.Type])
	}
	a, err := v.pop()
	if err != nil {
		return err
	}
	b, err := v.pop()
	if err != nil {
		return err
	}
	if a.IsRef() || b.IsRef() || a != b && a != unknown && b != unknown {
		return invalid(in.Start, "type mismatch: select of %s and %s", b, a)
	}
	if a == unknown {
		a = b
	}
	return v.pushAll(one[a])
}

func (v *validator) control() error {
	in := &v.in
	switch in.Op {
	case OpUnreachable:
		v.die()
	case OpIf:
		if err := v.popType(I32); err != nil {
			return err
		}
		return v.enter()
	case OpBlock, OpLoop:
		return v.enter()
	case OpElse:
		f, err := v.leave()
		if err != nil {
			return err
		}
		if f.op != OpIf {
			return fault(ErrMalformed, place(in.Start), "else without if")
		}
		v.ctrls = append(v.ctrls, frame{op: OpElse, params: f.params, results: f.results, height: f.height})
		return v.pushAll(f.params)
	case OpEnd:
		f, err := v.leave()
		if err != nil {
			return err
		}
		if f.op == OpIf && !slices.Equal(f.params, f.results) {
			return invalid(in.Start, "type mismatch: if without else that changes the stack")
		}
		return v.pushAll(f.results)
	case OpBr, OpBrIf:
		return v.branch()
	case OpBrTable:
		return v.branchTable()
	case OpReturn:
		if err := v.popAll(v.ctrls[0].results); err != nil {
			return err
		}
		v.die()
	}
	return nil
}

func (v *validator) branch() error {
	in := &v.in
	t, err := v.label(in.X)
	if err != nil {
		return err
	}
	if in.Op == OpBrIf {
		if err := v.popType(I32); err != nil {
			return err
		}
	}
	if err := v.popAll(t); err != nil {
		return err
	}
	if in.Op == OpBrIf {
		return v.pushAll(t)
	}
	v.die()
	return nil
}

func (v *validator) branchTable() error {
	in := &v.in
	if err := v.popType(I32); err != nil {
		return err
	}
	last, err := v.label(in.X)
	if err != nil {
		return err
	}
	for _, n := range in.Labels {
		t, err := v.label(n)
		if err != nil {
			return err
		}
		if len(t) != len(last) {
			return invalid(in.Start, "type mismatch: labels of br_table carry %d and %d values", len(t), len(last))
		}
		if err := v.peekAll(t); err != nil {
			return err
		}
	}
	if err := v.popAll(last); err != nil {
		return err
	}
	v.die()
	return nil
}

// peekAll checks that values of these types could be popped, and leaves them.
func (v *validator) peekAll(list []ValType) error {
	f := &v.ctrls[len(v.ctrls)-1]
	at := len(v.vals)
	for i := len(list) - 1; i >= 0; i-- {
		if at == f.height {
			if f.dead {
				return nil // the rest is of any type
			}
			return invalid(v.in.Start, "type mismatch: br_table finds too few operands")
		}
		at--
		if got := v.vals[at]; got != list[i] && got != unknown {
			return invalid(v.in.Start, "type mismatch: br_table finds %s, %s is needed", got, list[i])
		}
	}
	return nil
}

// table checks table.get, set, grow, size and fill, and elem.drop.
func (v *validator) table() error {
	in := &v.in
	if in.Op == OpElemDrop {
		if int64(in.X) >= int64(len(v.m.Elements)) {
			return invalid(in.Start, "unknown elem segment %d", in.X)
		}
		return nil
	}
	t, err := v.tableType(in.X)
	if err != nil {
		return err
	}
	var pop, push []ValType
	switch in.Op {
	case OpTableGet:
		pop, push = one[I32], one[t]
	case OpTableSet:
		pop = []ValType{I32, t}
	case OpTableGrow:
		pop, push = []ValType{t, I32}, one[I32]
	case OpTableSize:
		push = one[I32]
	case OpTableFill:
		pop = []ValType{I32, t, I32}
	default:
		return invalid(in.Start, "%s has no rule", in.Op)
	}
	if err := v.popAll(pop); err != nil {
		return err
	}
	return v.pushAll(push)
}
