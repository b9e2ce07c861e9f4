package wasm

// readElements reads the eight forms of element segments: bit 0 passive or declarative,
// bit 1 explicit table (active) or declarative (not active), bit 2 expressions.
func (m *Module) readElements(r *reader) {
	n := r.count("element segments", 3, maxSegments)
	m.Elements = make([]Element, 0, n)
	left := maxEntries
	for range n {
		flags := r.u32()
		if r.err == nil && flags > 7 {
			r.fail("malformed element segment kind %d", flags)
		}
		if r.err != nil {
			return
		}
		e := Element{Type: FuncRef, Exprs: flags&4 != 0}
		switch {
		case flags&1 == 0:
			if flags&2 != 0 {
				e.Table = r.u32()
			}
			e.Offset = r.constExpr()
		case flags&2 != 0:
			e.Mode = Declarative
		default:
			e.Mode = Passive
		}
		if flags&3 != 0 {
			if e.Exprs {
				e.Type = r.refType()
			} else if kind := r.byte(); kind != 0 && r.err == nil {
				r.fail("malformed element kind %d", kind)
			}
		}
		r.entries(&e, left)
		left -= e.Count
		if r.err != nil {
			return
		}
		m.Elements = append(m.Elements, e)
	}
}

func (r *reader) entries(e *Element, limit int) {
	size := 1
	if e.Exprs {
		size = 2
	}
	e.Count = r.count("elements", size, limit)
	e.Entries.Start = r.pos
	for n := 0; n < e.Count; n++ {
		if e.Exprs {
			r.constExpr()
		} else {
			n += r.short(e.Count - n)
			if n < e.Count {
				r.u32()
			}
		}
		if r.err != nil {
			return
		}
	}
	e.Entries.End = r.pos
}

// entry reads one entry of an element segment.
func (e *Element) entry(r *reader) ConstOp {
	if e.Exprs {
		return r.constExpr()
	}
	at := r.pos
	return ConstOp{Op: OpRefFunc, Index: r.u32(), Type: FuncRef, At: at}
}

func (m *Module) readData(r *reader) {
	n := r.count("data segments", 2, maxSegments)
	m.Datas = make([]Data, 0, n)
	for range n {
		var d Data
		switch flags := r.u32(); {
		case r.err != nil:
			return
		case flags > 2:
			r.fail("malformed data segment kind %d", flags)
		case flags == 1:
			d.Mode = Passive
		default:
			if flags == 2 {
				d.Memory = r.u32()
			}
			d.Offset = r.constExpr()
		}
		content := r.bytes()
		if r.err != nil {
			return
		}
		d.Bytes = Range{r.pos - len(content), r.pos}
		m.Datas = append(m.Datas, d)
	}
}

// readCode reads where the bodies stand and what locals they declare.
func (m *Module) readCode(r *reader) {
	n := r.count("bodies", 3, maxFuncs)
	m.Bodies = make([]Body, 0, n)
	for range n {
		content := r.bytes()
		if r.err != nil {
			return
		}
		s := reader{b: r.b, pos: r.pos - len(content), end: r.pos}
		b := Body{All: Range{s.pos, s.end}}
		b.Runs = s.count("runs of locals", 2, maxRuns)
		b.Locals.Start = s.pos
		sum := uint64(0)
		for range b.Runs {
			sum += uint64(s.u32())
			s.valType()
		}
		b.Locals.End = s.pos
		switch {
		case s.err != nil:
		case sum > maxLocals:
			s.err = fault(ErrLimit, place(b.All.Start), "function %d: %d locals, at most %d", len(m.Bodies), sum, maxLocals)
		case s.left() == 0 || s.b[s.end-1] != byte(OpEnd):
			s.err = fault(ErrMalformed, place(s.end), "function %d does not end with end", len(m.Bodies))
		}
		if s.err != nil {
			r.err = s.err
			return
		}
		b.Count = int(sum)
		b.Code = Range{s.pos, s.end}
		m.Bodies = append(m.Bodies, b)
	}
}

// runs returns the declarations of a body's locals.
func (m *Module) runs(b *Body, to []LocalRun) []LocalRun {
	r := reader{b: m.Bytes, pos: b.Locals.Start, end: b.Locals.End}
	for r.left() > 0 {
		to = append(to, LocalRun{r.u32(), r.valType()})
	}
	return to
}
