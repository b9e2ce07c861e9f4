package split

import (
	"fmt"
	"slices"

	"ganglion/gpu/ops"
)

var (
	_ ops.Carrier = (*Runtime)(nil)
	_ ops.Carrier = (*single)(nil)
)

// carrierOf is a runtime as one whose pages can be carried.
func carrierOf(rt ops.Runtime) (ops.Carrier, error) {
	if c, ok := rt.(ops.Carrier); ok {
		return c, nil
	}
	return nil, fmt.Errorf("its pages cannot be carried: %w", ops.ErrUnsupported)
}

// ReadPage copies a page that the one backend has.
func (s *single) ReadPage(group, page int, into []byte) ([]byte, error) {
	c, err := carrierOf(s.Runtime)
	if err != nil {
		return nil, fmt.Errorf("split: read page: %w", err)
	}
	return c.ReadPage(group, page, into)
}

// WritePage puts a page in place on the one backend.
func (s *single) WritePage(group, page int, data []byte) error {
	c, err := carrierOf(s.Runtime)
	if err != nil {
		return fmt.Errorf("split: write page: %w", err)
	}
	return c.WritePage(group, page, data)
}

// ReadPage puts the page of a group together from the sides that have caches of it.
func (r *Runtime) ReadPage(group, page int, into []byte) ([]byte, error) {
	size, err := r.checkCarry(group, page)
	if err != nil {
		return nil, err
	}
	out := slices.Grow(into[:0], size)[:size]
	for _, s := range r.sides {
		own := s.groups[group]
		if own < 0 {
			continue
		}
		c, err := carrierOf(s.rt)
		if err != nil {
			return nil, s.failed("read page", err)
		}
		if s.page, err = c.ReadPage(own, page, s.page); err != nil {
			return nil, s.failed("read page", err)
		}
		r.eachPart(s, group, func(whole, part ops.PagePart) {
			copy(out[whole.At:whole.At+whole.Size()], s.page[part.At:])
		})
	}
	return out, nil
}

// WritePage divides a page.
func (r *Runtime) WritePage(group, page int, data []byte) error {
	size, err := r.checkCarry(group, page)
	if err != nil {
		return err
	}
	if err := r.paging.CheckCarry(group, page, data, size); err != nil {
		return err
	}
	for _, s := range r.sides {
		own := s.groups[group]
		if own < 0 {
			continue
		}
		c, err := carrierOf(s.rt)
		if err != nil {
			return s.failed("write page", err)
		}
		_, n := s.paging.Parts(s.plan, r.opts.KV, own)
		s.page = slices.Grow(s.page[:0], n)[:n]
		r.eachPart(s, group, func(whole, part ops.PagePart) {
			copy(s.page[part.At:part.At+part.Size()], data[whole.At:])
		})
		if err := c.WritePage(own, page, s.page); err != nil {
			return s.failed("write page", err)
		}
	}
	return nil
}

// checkCarry checks a page and gives the bytes that it has.
func (r *Runtime) checkCarry(group, page int) (size int, err error) {
	if err := r.usable("carry page"); err != nil {
		return 0, err
	}
	_, size = r.paging.Parts(r.plan, r.opts.KV, group)
	return size, r.paging.CheckCopy(group, page, page)
}

// eachPart calls f for every part of a group's page that a side has: where it lies in the
// whole plan's page, and where in the side's.
func (r *Runtime) eachPart(s *side, group int, f func(whole, part ops.PagePart)) {
	all, _ := r.paging.Parts(r.plan, r.opts.KV, group)
	own, _ := s.paging.Parts(s.plan, r.opts.KV, s.groups[group])
	for _, part := range own {
		i := slices.IndexFunc(all, func(p ops.PagePart) bool {
			return p.Cache == s.caches[part.Cache] && p.Values == part.Values
		})
		f(all[i], part)
	}
}
