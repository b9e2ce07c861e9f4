package plugintest

import (
	"bytes"
	"fmt"

	"ganglion/plugins/abi"
)

// audit finds writes into parts of the frame that are the host's. They do no harm to the
// host, which keeps its own copy of what it relies on: they are the sign of a pointer or
// a size that is wrong.
type audit struct {
	was    []byte
	allows []span
}

type span struct{ from, to int }

// outFields are the fields of the header that a plugin may write.
var outFields = []span{
	{abi.OffCandN, abi.OffCandN + 4}, {abi.OffEditN, abi.OffEditN + 4}, {abi.OffOutN, abi.OffOutN + 4},
	{abi.OffTemperature, abi.OffTemperature + 4}, {abi.OffToken, abi.OffWakeStep + 4},
}

// before keeps the frame of a call.
func (a *audit) before(frame []byte, l *abi.Layout) {
	a.was = append(a.was[:0], frame...)
	if a.allows == nil {
		a.allows = append(a.allows, outFields...)
	}
	a.allows = a.allows[:len(outFields)]
	vocab := int(get(frame, abi.OffVocab))
	buffer := func(off, size int) {
		if off > 0 {
			a.allows = append(a.allows, span{off, off + size})
		}
	}
	buffer(l.CandIDs, 4*l.CandCap)
	buffer(l.CandLogits, 4*l.CandCap)
	buffer(l.Full, 4*vocab)
	buffer(l.Mask, (vocab+31)/32*4)
	buffer(l.Edits, abi.EditBytes*l.EditCap)
	buffer(l.Out, l.OutCap)
}

// after compares the frame with what it was. Hook and fuel are written by the host.
func (a *audit) after(h abi.Hook, frame []byte, l *abi.Layout) error {
	copy(a.was[abi.OffHook:abi.OffHook+4], frame[abi.OffHook:])
	copy(a.was[abi.OffFuel:abi.OffFuel+8], frame[abi.OffFuel:])
	for _, s := range a.allows {
		copy(a.was[s.from:s.to], frame[s.from:s.to])
	}
	if bytes.Equal(a.was, frame) {
		return nil
	}
	at := 0
	for a.was[at] == frame[at] {
		at++
	}
	return fmt.Errorf("gg_%s wrote to byte %#x of its frame (%s), which is the host's", h, at, place(at, l))
}

// place names the part of a frame that a byte is in.
func place(at int, l *abi.Layout) string {
	for _, p := range []struct {
		name      string
		off, size int
	}{
		{"the header", 0, abi.HeaderBytes}, {"the history", l.History, 4 * l.HistoryCap}, {"the gathered tokens", l.GatherIDs, 4 * l.GatherN},
		{"the gathered logits", l.GatherLogits, 4 * l.GatherN}, {"the input", l.In, l.InCap},
	} {
		if (p.off > 0 || p.name == "the header") && at >= p.off && at < p.off+p.size {
			return p.name
		}
	}
	return "behind the end of a buffer"
}
