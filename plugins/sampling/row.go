package sampling

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// CopyTo writes the logits of all tokens below vocab to dst as little-endian floats,
// −Inf for those that are out; dst has 4·vocab bytes.
func (d *Distribution) CopyTo(dst []byte, vocab int) {
	if d.ids == nil {
		copyFloats(dst, d.logits)
		return
	}
	none := math.Float32bits(float32(math.Inf(-1)))
	for i := range vocab {
		binary.LittleEndian.PutUint32(dst[4*i:], none)
	}
	for i, id := range d.ids {
		binary.LittleEndian.PutUint32(dst[4*id:], math.Float32bits(d.logits[i]))
	}
}

// Replace sets the logits of all tokens that are left to those of src, written as by
// CopyTo. A token that is out stays out. With an error the distribution is as it was.
func (d *Distribution) Replace(src []byte) error {
	none := float32(math.Inf(-1))
	row := slices.Grow(d.s.spared[:0], len(d.logits))[:len(d.logits)]
	left := false
	for i, l := range d.logits {
		id := int32(i) // of a whole row, which is most of what comes here
		if d.ids != nil {
			id = d.ids[i]
		}
		v := math.Float32frombits(binary.LittleEndian.Uint32(src[4*id:]))
		switch {
		case !(l >= out):
			v = none
		case !(v <= math.MaxFloat32):
			return ErrNaN
		case v >= out:
			left = true
		}
		row[i] = v
	}
	if !left {
		return ErrEmpty
	}
	d.unranked(row)
	return nil
}

// unranked makes a row in the order of the present candidates, built in the spare
// buffer, their logits.
func (d *Distribution) unranked(row []float32) {
	s := d.s
	s.row, s.spared = row, s.row
	d.logits, d.shared, d.known = row, false, false
	d.stale()
	if d.ranked {
		d.byID(d.ids, d.logits)
	}
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// copyFloats writes floats in little-endian order.
func copyFloats(dst []byte, src []float32) {
	if littleEndian && len(src) > 0 {
		// Sound: the bytes of a slice of floats may be read as bytes at any address,
		// and src keeps them alive.
		copy(dst, unsafe.Slice((*byte)(unsafe.Pointer(&src[0])), 4*len(src)))
		return
	}
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}
