package meter

import "ganglion/plugins/wasm"

// code returns the content of the code section with all charges in it.
func (w *writer) code() ([]byte, error) {
	m := w.m
	w.plan.m, w.plan.policy = m, w.policy
	size := 0
	for i := range m.Bodies {
		size += m.Bodies[i].All.Len()
	}
	out := wasm.AppendUint(make([]byte, 0, size+size/4+16), uint64(len(m.Bodies)))
	var body []byte
	for i := range m.Bodies {
		if err := w.plan.function(i); err != nil {
			return nil, err
		}
		body = w.body(body[:0], i)
		out = wasm.AppendUint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return out, nil
}

// body appends the body of function i with the planned charges.
func (w *writer) body(to []byte, i int) []byte {
	b := &w.m.Bodies[i]
	// The function's own locals keep their indices; ours come behind them.
	left := uint64(len(w.m.Types[w.m.Funcs[i]].Params) + b.Count)
	length := left + 1
	runs := b.Runs + 1
	if w.plan.bulk {
		runs++
	}
	to = wasm.AppendUint(to, uint64(runs))
	to = append(to, w.m.Bytes[b.Locals.Start:b.Locals.End]...)
	to = append(to, 1, byte(wasm.I64))
	if w.plan.bulk {
		to = append(to, 1, byte(wasm.I32))
	}
	from := b.Code.Start
	for _, p := range w.plan.points {
		if p.off {
			continue
		}
		to = append(to, w.m.Bytes[from:p.at]...)
		from = p.at
		to = w.charge(to, p, left, length)
		w.info.Charges++
	}
	return append(to, w.m.Bytes[from:b.Code.End]...)
}

// charge appends the code of one point. left is a local of type i64, for what the charge
// leaves in the counter; length one of type i32, for the operand of a bulk instruction.
//
// The counter never wraps: the host sets at most 2⁶³−1, a charge takes less than 2⁴⁶, and
// the first one that goes below zero is the last.
func (w *writer) charge(to []byte, p point, left, length uint64) []byte {
	if p.bulk != 0 {
		// The length is the last operand of every bulk instruction.
		to = index(to, wasm.OpLocalTee, length)
	}
	to = index(to, wasm.OpGlobalGet, w.fuel)
	if p.bulk != 0 {
		to = index(to, wasm.OpLocalGet, length)
		to = append(to, byte(wasm.OpI64ExtendU))
		switch p.bulk {
		case wasm.OpMemoryGrow:
			to = append(to, byte(wasm.OpI64Const), pageShift, byte(wasm.OpI64Shl))
		case wasm.OpMemoryInit, wasm.OpMemoryCopy, wasm.OpMemoryFill:
			to = append(to, byte(wasm.OpI64Const), bytesShift, byte(wasm.OpI64ShrU))
		}
	} else {
		to = append(to, byte(wasm.OpI64Const))
		to = wasm.AppendInt(to, p.amount)
	}
	to = append(to, byte(wasm.OpI64Sub))
	to = index(to, wasm.OpLocalTee, left)
	to = index(to, wasm.OpGlobalSet, w.fuel)
	to = index(to, wasm.OpLocalGet, left)
	return append(to, byte(wasm.OpI64Const), 0, byte(wasm.OpI64LtS),
		byte(wasm.OpIf), 0x40, byte(wasm.OpUnreachable), byte(wasm.OpEnd))
}

func index(to []byte, op wasm.Op, i uint64) []byte {
	return wasm.AppendUint(append(to, byte(op)), i)
}
