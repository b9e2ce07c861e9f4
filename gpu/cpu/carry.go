//go:build cgo

package cpu

import (
	"fmt"
	"slices"

	"ganglion/gpu/ops"
)

var _ ops.Carrier = (*Runtime)(nil)

// ReadPage copies a page of every cache of a group. A page here has its heads before its
// cells.
func (r *Runtime) ReadPage(group, page int, into []byte) ([]byte, error) {
	parts, size, err := r.carried(group, page)
	if err != nil {
		return nil, err
	}
	out := slices.Grow(into[:0], size)[:size]
	for _, p := range parts {
		from := r.pageOf(p, page)
		for h := range p.Heads {
			for c := range ops.PageSize {
				copy(out[p.At+c*p.Cell()+h*p.Head:][:p.Head], from[(h*ops.PageSize+c)*p.Head:])
			}
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
		to := r.pageOf(p, page)
		for h := range p.Heads {
			for c := range ops.PageSize {
				copy(to[(h*ops.PageSize+c)*p.Head:][:p.Head], data[p.At+c*p.Cell()+h*p.Head:])
			}
		}
	}
	return nil
}

// carried checks a page and gives its parts and bytes.
func (r *Runtime) carried(group, page int) ([]ops.PagePart, int, error) {
	if r.closed {
		return nil, 0, fmt.Errorf("cpu: carry page: %w", ops.ErrClosed)
	}
	parts, size := r.paging.Parts(r.plan, r.opts.KV, group)
	return parts, size, r.paging.CheckCopy(group, page, page)
}

// pageOf is the memory of a page of keys or values.
func (r *Runtime) pageOf(p ops.PagePart, page int) []byte {
	b := r.caches[p.Cache].keys
	if p.Values {
		b = r.caches[p.Cache].values
	}
	return array[byte](b, int(b.bytes))[page*p.Size() : (page+1)*p.Size()]
}
