package pipeline

import (
	"encoding/binary"
	"math"

	"ganglion/plugins/abi"
	"ganglion/plugins/sampling"
)

// frame is a plugin's frame during one call. Offsets and capacities come from the layout
// that the host made, never from the plugin's memory.
type frame struct {
	b []byte
	l *abi.Layout
}

func (f frame) put(off int, v uint32)     { binary.LittleEndian.PutUint32(f.b[off:], v) }
func (f frame) get(off int) uint32        { return binary.LittleEndian.Uint32(f.b[off:]) }
func (f frame) putF(off int, v float32)   { f.put(off, math.Float32bits(v)) }
func (f frame) getF(off int) float32      { return math.Float32frombits(f.get(off)) }
func (f frame) part(off, size int) []byte { return f.b[off : off+size : off+size] }

// candidates writes the best candidates and their share of the mass.
func (f frame) candidates(d *sampling.Distribution) {
	n := f.l.CandCap
	top := d.Top(n)
	ids, logits := f.part(f.l.CandIDs, 4*n)[:4*len(top)], f.part(f.l.CandLogits, 4*n)[:4*len(top)]
	for i, c := range top {
		binary.LittleEndian.PutUint32(ids[4*i:], uint32(c.ID))
		binary.LittleEndian.PutUint32(logits[4*i:], math.Float32bits(c.Logit))
	}
	f.put(abi.OffCandN, uint32(len(top)))
	f.putF(abi.OffCandMass, float32(d.Share(n)))
}

// kept reads the candidates that a plugin left.
func (f frame) kept(dst []sampling.Candidate) ([]sampling.Candidate, bool) {
	n := int(f.get(abi.OffCandN))
	if n > f.l.CandCap {
		return dst, false
	}
	ids, logits := f.part(f.l.CandIDs, 4*n), f.part(f.l.CandLogits, 4*n)
	for i := range n {
		dst = append(dst, sampling.Candidate{
			ID:    int32(binary.LittleEndian.Uint32(ids[4*i:])),
			Logit: math.Float32frombits(binary.LittleEndian.Uint32(logits[4*i:])),
		})
	}
	return dst, true
}

// statistics writes what is known of the whole distribution.
func (f frame) statistics(s *sampling.Stats) {
	f.putF(abi.OffMax, s.Max)
	f.putF(abi.OffMean, s.Mean)
	f.putF(abi.OffStd, s.Std)
	f.putF(abi.OffLogSumExp, s.LogSumExp)
	f.putF(abi.OffEntropy, s.Entropy)
	f.put(abi.OffNFinite, uint32(s.Finite))
}

// gather writes the logits of the tokens that the plugin named, −Inf for those that are
// out.
func (f frame) gather(d *sampling.Distribution, ids []int32) {
	for i, id := range ids {
		f.putF(f.l.GatherLogits+4*i, d.Logit(id))
	}
}

// edits reads the edits that a plugin made.
func (f frame) edits(dst []sampling.Edit) ([]sampling.Edit, bool) {
	n := int(f.get(abi.OffEditN))
	if n > f.l.EditCap {
		return dst, false
	}
	b := f.part(f.l.Edits, abi.EditBytes*n)
	for i := range n {
		w := binary.LittleEndian.Uint32(b[abi.EditBytes*i:])
		dst = append(dst, sampling.Edit{
			ID: int32(w & abi.EditID), Op: sampling.Op(w >> abi.EditShift),
			Value: math.Float32frombits(binary.LittleEndian.Uint32(b[abi.EditBytes*i+4:])),
		})
	}
	return dst, true
}

// tokens reads the tokens that a plugin forces.
func (f frame) tokens(dst []int32, vocab int) ([]int32, bool) {
	n := int(f.get(abi.OffOutN))
	if n > f.l.OutCap/4 {
		return dst, false
	}
	b := f.part(f.l.Out, 4*n)
	for i := range n {
		id := binary.LittleEndian.Uint32(b[4*i:])
		if id >= uint32(vocab) {
			return dst, false
		}
		dst = append(dst, int32(id))
	}
	return dst, true
}

// text reads the text that a plugin gives; it is valid until the next call.
func (f frame) text() ([]byte, bool) {
	n := int(f.get(abi.OffOutN))
	if n > f.l.OutCap {
		return nil, false
	}
	return f.part(f.l.Out, n), true
}

// history is what a plugin's history buffer holds: tokens from place from up to place
// to of the sequence. Most steps append one token to it.
type history struct{ from, to int }

// write brings the buffer up to date with the tokens of the sequence, of which it holds
// those from start on, as many as fit.
func (h *history) write(f frame, tokens []int32, start int) {
	start = max(start, len(tokens)-f.l.HistoryCap)
	b := f.part(f.l.History, 4*f.l.HistoryCap)
	switch {
	case h.to > len(tokens) || h.to < start || h.from > start:
		h.from, h.to = start, start // nothing of it is of use
	case h.from < start:
		copy(b, b[4*(start-h.from):4*(h.to-h.from)])
		h.from = start
	}
	for i := h.to; i < len(tokens); i++ {
		binary.LittleEndian.PutUint32(b[4*(i-start):], uint32(tokens[i]))
	}
	h.to = len(tokens)
	f.put(abi.OffHistoryLen, uint32(len(tokens)-start))
	f.put(abi.OffHistoryPos, uint32(start))
}

// forget makes the next write fill the whole buffer.
func (h *history) forget() { *h = history{} }
