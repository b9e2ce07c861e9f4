package host

import (
	"encoding/binary"
	"math"

	"ganglion/plugins/abi"
)

func (i *Instance) auxOpen(at, n, _ uint32) int32 {
	switch {
	case !i.can(abi.CapAuxSeq) || i.services.Sequences == nil || i.hook != abi.HookPrompt:
		return abi.NotPermitted
	case n == 0 || n > 1<<20:
		return abi.Invalid
	case i.opened == abi.MaxAuxiliary:
		return abi.OverQuota
	}
	b, ok := i.input(at, 4*n)
	if !ok {
		return abi.Invalid
	}
	prompt := make([]int32, n)
	for k := range prompt {
		id := binary.LittleEndian.Uint32(b[4*k:])
		if id >= i.vocab {
			return abi.Invalid
		}
		prompt[k] = int32(id)
	}
	seq, err := i.services.Sequences.Open(prompt)
	if err != nil {
		return abi.OverQuota
	}
	i.opened++
	return int32(seq)
}

// auxReady tells whether there are logits of auxiliary sequences.
func (i *Instance) auxReady() bool {
	return i.can(abi.CapAuxSeq) && i.services.Sequences != nil && (i.hook == abi.HookLogits || i.hook == abi.HookChoose)
}

func (i *Instance) auxLogits(seq, ids, n, out uint32) int32 {
	if !i.auxReady() {
		return abi.NotPermitted
	}
	row := i.services.Sequences.Row(int(seq))
	if row == nil {
		return abi.NotFound
	}
	if n > i.vocab {
		return abi.Invalid
	}
	from, ok1 := i.input(ids, 4*n)
	to, ok2 := i.input(out, 4*n)
	if !ok1 || !ok2 {
		return abi.Invalid
	}
	for k := range int(n) {
		id := binary.LittleEndian.Uint32(from[4*k:])
		if id >= uint32(len(row)) {
			return abi.Invalid
		}
		binary.LittleEndian.PutUint32(to[4*k:], math.Float32bits(row[id]))
	}
	return int32(n)
}

func (i *Instance) auxStats(seq, out uint32) int32 {
	if !i.auxReady() {
		return abi.NotPermitted
	}
	st, ok := i.services.Sequences.Stats(int(seq))
	if !ok {
		return abi.NotFound
	}
	to, ok := i.bytes(out, 20)
	if !ok {
		return abi.Invalid
	}
	for k, v := range [...]float32{st.Max, st.Mean, st.Std, st.LogSumExp, st.Entropy} {
		binary.LittleEndian.PutUint32(to[4*k:], math.Float32bits(v))
	}
	return 0
}
