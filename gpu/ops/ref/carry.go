package ref

import (
	"encoding/binary"
	"fmt"
	"math"

	"ganglion/gpu/ops"
)

var _ ops.Carrier = (*Runtime)(nil)

// ReadPage copies a page of every cache of a group.
func (r *Runtime) ReadPage(group, page int, into []byte) ([]byte, error) {
	parts, _, err := r.carried(group, page)
	if err != nil {
		return nil, err
	}
	out := into[:0]
	for _, p := range parts {
		s := r.storeOf(p)
		for c := range ops.PageSize {
			out = s.appendCell(out, page*ops.PageSize+c)
		}
	}
	return out, nil
}

// WritePage puts a page in place.
func (r *Runtime) WritePage(group, page int, data []byte) error {
	parts, size, err := r.carried(group, page)
	if err != nil {
		return err
	}
	if err := r.paging.CheckCarry(group, page, data, size); err != nil {
		return err
	}
	for _, p := range parts {
		s := r.storeOf(p)
		for c := range ops.PageSize {
			s.setCell(page*ops.PageSize+c, data[p.At+c*p.Cell():])
		}
	}
	return nil
}

// carried checks a page and gives its parts and bytes.
func (r *Runtime) carried(group, page int) ([]ops.PagePart, int, error) {
	if r.closed {
		return nil, 0, fmt.Errorf("ops/ref: carry page: %w", ops.ErrClosed)
	}
	parts, size := r.paging.Parts(r.plan, r.opts.KV, group)
	return parts, size, r.paging.CheckCopy(group, page, page)
}

func (r *Runtime) storeOf(p ops.PagePart) *store {
	if p.Values {
		return &r.caches[p.Cache].values
	}
	return &r.caches[p.Cache].keys
}

// appendCell appends a cell as it is carried.
func (s *store) appendCell(out []byte, cell int) []byte {
	le := binary.LittleEndian
	for h := range s.heads {
		at := cell*s.width() + h*s.dim
		switch {
		case s.full != nil:
			for _, v := range s.full[at : at+s.dim] {
				out = le.AppendUint32(out, math.Float32bits(v))
			}
		case s.quants != nil:
			for _, q := range s.quants[at : at+s.dim] {
				out = append(out, byte(q))
			}
			for _, d := range s.scales[(cell*s.heads+h)*s.blocks():][:s.blocks()] {
				out = le.AppendUint16(out, d)
			}
		default:
			for _, v := range s.half[at : at+s.dim] {
				out = le.AppendUint16(out, v)
			}
		}
	}
	return out
}

// setCell is the way back.
func (s *store) setCell(cell int, data []byte) {
	le := binary.LittleEndian
	for h := range s.heads {
		at := cell*s.width() + h*s.dim
		switch {
		case s.full != nil:
			for i := range s.dim {
				s.full[at+i], data = math.Float32frombits(le.Uint32(data)), data[4:]
			}
		case s.quants != nil:
			for i := range s.dim {
				s.quants[at+i], data = int8(data[0]), data[1:]
			}
			for i := range s.blocks() {
				s.scales[(cell*s.heads+h)*s.blocks()+i], data = le.Uint16(data), data[2:]
			}
		default:
			for i := range s.dim {
				s.half[at+i], data = le.Uint16(data), data[2:]
			}
		}
	}
}
