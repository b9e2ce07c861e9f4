package sampling

import (
	"encoding/binary"
	"errors"
	"math"
)

// Op is what an edit does to a logit.
type Op uint8

// The operations.
const (
	OpAdd       Op = iota // x + v
	OpSet                 // v
	OpMulSigned           // x > 0 ? x / v : x · v: the repetition penalty
	OpBan                 // out, whatever v is
	OpMin                 // min(x, v)
	OpMax                 // max(x, v)

	ops
)

// Edit changes the logit of one token.
type Edit struct {
	ID    int32
	Op    Op
	Value float32
}

// What an edit, a mask, candidates or a row may not do. The distribution is then as it
// was before.
var (
	ErrNaN   = errors.New("a logit became NaN or +Inf")
	ErrEmpty = errors.New("no token is left")
	ErrID    = errors.New("a token id is not one of those offered")
	ErrOp    = errors.New("an edit has an unknown operation or a value that it cannot have")
)

const out = float32(-math.MaxFloat32) // logits below are out

// valid tells whether an edit has an operation and a value that goes with it.
func (e *Edit) valid() bool {
	finite := e.Value >= -math.MaxFloat32 && e.Value <= math.MaxFloat32
	return e.Op == OpBan || e.Op < ops && finite && (e.Op != OpMulSigned || e.Value > 0)
}

// value returns what an edit makes of a logit.
func (e *Edit) value(x float32) float32 {
	v := e.Value
	switch e.Op {
	case OpAdd:
		return x + v
	case OpSet:
		return v
	case OpMulSigned:
		if x > 0 {
			return x / v
		}
		return x * v
	case OpMin:
		return min(x, v)
	case OpMax:
		return max(x, v)
	}
	return float32(math.Inf(-1))
}

// Edit applies edits in their order, all or, with an error, none. A token that is out
// stays out: no edit brings back what a constraint took away. An id beyond the
// vocabulary is an error, one that is merely no candidate any more is not.
func (d *Distribution) Edit(edits []Edit) error {
	if len(edits) == 0 {
		return nil
	}
	d.unrank()
	u := d.s.undo[:0]
	err := error(nil)
	before, known := d.peak, d.known
	for i := range edits {
		e := &edits[i]
		if e.ID < 0 || int(e.ID) >= d.vocab {
			err = ErrID
			break
		}
		if !e.valid() {
			err = ErrOp
			break
		}
		at, ok := d.index(e.ID)
		if !ok || !(d.logits[at] >= out) {
			continue
		}
		v := e.value(d.logits[at])
		if !(v <= math.MaxFloat32) {
			err = ErrNaN
			break
		}
		u = append(u, Candidate{int32(at), d.logits[at]})
		d.set(at, v)
	}
	d.s.undo = u
	if err == nil && !d.any() {
		err = ErrEmpty
	}
	if err != nil {
		for i := len(u) - 1; i >= 0; i-- {
			d.edit()[u[i].ID] = u[i].Logit
		}
		d.peak, d.known = before, known
	}
	return err
}

// any tells whether a candidate is left.
func (d *Distribution) any() bool {
	if d.known {
		return d.peak.Logit >= out
	}
	for _, l := range d.logits {
		if l >= out {
			return true
		}
	}
	return false
}

// Mask takes out every token whose bit in words is not set: bit i mod 32 of the 32-bit
// little-endian word i/32 stands for token i, and tokens beyond the words are out. It
// changes nothing where that would leave no token.
func (d *Distribution) Mask(words []byte) error {
	s := d.s
	if d.ids == nil {
		return d.maskRow(words)
	}
	allowed := func(id int32) bool {
		w := int(id) / 32 * 4
		return w+4 <= len(words) && binary.LittleEndian.Uint32(words[w:])>>(id%32)&1 == 1
	}
	left := false
	for i, id := range d.ids {
		left = left || d.logits[i] >= out && allowed(id)
	}
	if !left {
		return ErrEmpty
	}
	ids, logits := s.sparedIDs[:0], s.spared[:0]
	for i, id := range d.ids {
		if allowed(id) {
			ids, logits = append(ids, id), append(logits, d.logits[i])
		}
	}
	ranked := d.ranked
	d.become(ids, logits)
	d.ranked = ranked
	d.known = d.known && allowed(d.peak.ID)
	return nil
}

// maskRow makes of a whole row the list of the tokens that are allowed and not out:
// later passes then look at no others.
func (d *Distribution) maskRow(words []byte) error {
	ids, logits := d.s.sparedIDs[:0], d.s.spared[:0]
	n := len(d.logits)
	for from := 0; from < n && from/8+4 <= len(words); from += 32 {
		w := binary.LittleEndian.Uint32(words[from/8:])
		if w == 0 {
			continue
		}
		for i, l := range d.logits[from:min(from+32, n)] {
			if w>>i&1 == 1 && l >= out {
				ids, logits = append(ids, int32(from+i)), append(logits, l)
			}
		}
	}
	if len(ids) == 0 {
		d.s.sparedIDs, d.s.spared = ids, logits
		return ErrEmpty
	}
	d.become(ids, logits)
	if d.known {
		id := int(d.peak.ID)
		d.known = id/8 < len(words) && words[id/8]>>(id%8)&1 == 1
	}
	return nil
}
