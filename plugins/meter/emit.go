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
	out := wasm.AppendUint(make([]byte, 0, size+size/4+96), uint64(len(m.Bodies)+1))
	var body []byte
	for i := range m.Bodies {
		if err := w.plan.function(i); err != nil {
			return nil, err
		}
		body = w.body(body[:0], i)
		out = wasm.AppendUint(out, uint64(len(body)))
		out = append(out, body...)
	}
	body = w.refiller(body[:0])
	out = wasm.AppendUint(out, uint64(len(body)))
	return append(out, body...), nil
}

// refiller appends the body of the function that a charge calls when it emptied the
// counter: it moves the rest there, ends the guest if that was all, and leaves a breath.
// In between it asks for memory of no pages, for which compiled code goes to the host and
// back: that is where whoever waits for this thread gets it.
func (w *writer) refiller(to []byte) []byte {
	rest := w.fuel + 1
	to = append(to, 0)
	to = index(to, wasm.OpGlobalGet, w.fuel)
	to = index(to, wasm.OpGlobalGet, rest)
	to = append(to, byte(wasm.OpI64Add))
	to = index(to, wasm.OpGlobalSet, w.fuel)
	to = append(to, byte(wasm.OpI64Const), 0)
	to = index(to, wasm.OpGlobalSet, rest)
	to = index(to, wasm.OpGlobalGet, w.fuel)
	to = append(to, byte(wasm.OpI64Const), 0, byte(wasm.OpI64LtS), byte(wasm.OpIf), 0x40, byte(wasm.OpUnreachable), byte(wasm.OpEnd))
	if w.m.Imported(wasm.KindMemory)+len(w.m.Memories) > 0 && !w.policy.breathless {
		to = append(to, byte(wasm.OpI32Const), 0, byte(wasm.OpMemoryGrow), 0, byte(wasm.OpDrop))
	}
	breath := func(to []byte) []byte { return wasm.AppendInt(append(to, byte(wasm.OpI64Const)), Breath) }
	to = breath(index(to, wasm.OpGlobalGet, w.fuel))
	to = append(to, byte(wasm.OpI64GtS), byte(wasm.OpIf), 0x40)
	to = breath(index(to, wasm.OpGlobalGet, w.fuel))
	to = append(to, byte(wasm.OpI64Sub))
	to = index(to, wasm.OpGlobalSet, rest)
	to = index(breath(to), wasm.OpGlobalSet, w.fuel)
	return append(to, byte(wasm.OpEnd), byte(wasm.OpEnd))
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
// The counter never wraps: the host sets at most 2⁶³−1 in all, a charge takes less than
// 2⁴⁶, and the first one that looks and goes below zero is paid of the rest or is the last.
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
	if !p.head && p.bulk == 0 {
		return index(to, wasm.OpGlobalSet, w.fuel)
	}
	to = index(to, wasm.OpLocalTee, left)
	to = index(to, wasm.OpGlobalSet, w.fuel)
	to = index(to, wasm.OpLocalGet, left)
	to = append(to, byte(wasm.OpI64Const), 0, byte(wasm.OpI64LtS), byte(wasm.OpIf), 0x40)
	return append(index(to, wasm.OpCall, w.refill), byte(wasm.OpEnd))
}

func index(to []byte, op wasm.Op, i uint64) []byte {
	return wasm.AppendUint(append(to, byte(op)), i)
}
