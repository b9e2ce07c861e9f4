package compute

import (
	"encoding/binary"
	"math"
	"slices"

	"ganglion/gpu/ops"
)

var _ ops.Carrier = (*Runtime)(nil)

// ReadPage copies a page of every cache of a group into into[:0].
func (r *Runtime) ReadPage(group, page int, into []byte) ([]byte, error) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	parts, size, err := r.carried(group, page)
	if err != nil {
		return nil, err
	}
	out := slices.Grow(into[:0], size)[:size]
	for _, p := range parts {
		l := r.pageLayout(p)
		mem, here := r.caches[p.Cache].part(p.Values), r.pageBuffer(l)
		if err := mem.buf.Read(int64(page)*int64(len(here)), here); err != nil {
			return nil, r.failed("read page", err)
		}
		l.each(func(at, carried, n int) { copy(out[p.At+carried:][:n], here[at:]) })
	}
	return out, nil
}

// WritePage puts a page in place that ReadPage gave, here or on another backend.
func (r *Runtime) WritePage(group, page int, data []byte) error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	parts, size, err := r.carried(group, page)
	if err != nil {
		return err
	}
	if err := r.paging.CheckCarry(group, page, data, size); err != nil {
		return err
	}
	for _, p := range parts {
		l := r.pageLayout(p)
		mem, here := r.caches[p.Cache].part(p.Values), r.pageBuffer(l)
		clear(here) // heads end in zeros where their width is no multiple of eight
		l.each(func(at, carried, n int) { copy(here[at:][:n], data[p.At+carried:]) })
		if err := mem.buf.Write(int64(page)*int64(len(here)), here); err != nil {
			return r.failed("write page", err)
		}
	}
	return nil
}

// carried checks a page and gives its parts and bytes.
func (r *Runtime) carried(group, page int) ([]ops.PagePart, int, error) {
	if err := r.usable("carry page"); err != nil {
		return nil, 0, err
	}
	parts, size := r.paging.Parts(r.plan, r.opts.KV, group)
	return parts, size, r.paging.CheckCopy(group, page, page)
}

// pageBuffer is the host's memory for the keys or values of a page as the device has them.
func (r *Runtime) pageBuffer(l pageLayout) []byte {
	n := l.heads * l.head
	r.page = slices.Grow(r.page[:0], n)[:n]
	return r.page
}

func (c *cache) part(values bool) *memory {
	if values {
		return c.values
	}
	return c.keys
}

// pageLayout is how the keys or values of a page lie on the device: kv.glsl in Go.
type pageLayout struct {
	heads, dim int
	head       int  // bytes of a head's part of the page
	elem       int  // bytes of a value
	values     bool // cells before units; keys the other way round
	blocks     int  // scales of a head, 0 but for q8_0
	carried    int  // bytes of a head of a cell as it is carried
}

func (r *Runtime) pageLayout(p ops.PagePart) pageLayout {
	l := pageLayout{heads: p.Heads, dim: p.Dim, values: p.Values, carried: p.Head,
		head: ops.PageSize * int(headBytes(r.opts.KV, p.Dim)), elem: r.opts.KV.Bytes(1)}
	if r.opts.KV == ops.KVQ8 {
		l.elem, l.blocks = 1, (p.Dim+ops.KVBlock-1)/ops.KVBlock
	}
	return l
}

// each calls f for every run of bytes that stand together in both layouts: where they
// begin on the device and as they are carried, and their number.
func (l pageLayout) each(f func(at, carried, n int)) {
	units := (l.dim + 7) / 8
	for h := range l.heads {
		for c := range ops.PageSize {
			to := (c*l.heads + h) * l.carried
			for u := range units {
				at := u*ops.PageSize + c
				if l.values {
					at = c*units + u
				}
				f(h*l.head+at*8*l.elem, to+u*8*l.elem, min(8, l.dim-8*u)*l.elem)
			}
			for b := range l.blocks {
				f(h*l.head+8*units*ops.PageSize+2*(b*ops.PageSize+c), to+l.dim+2*b, 2)
			}
		}
	}
}

// turned is a state that the device keeps as [count][rows][cols] where it is told as
// [count][cols][rows], for invocations that stand side by side read numbers that do.
type turned struct{ count, rows, cols int }

// turnedStates are those of a plan, by its states; count 0: as it is told.
func turnedStates(p *ops.Plan) []turned {
	out := make([]turned, len(p.States))
	for _, op := range p.Ops {
		switch o := op.(type) {
		case *ops.Mamba1:
			out[o.State] = turned{1, o.N, o.X.Width}
		case *ops.Mamba2:
			out[o.State] = turned{1, o.N, o.X.Width}
		case *ops.GatedDelta:
			out[o.State] = turned{o.VHeads, o.Dim, o.Dim}
		}
	}
	return out
}

// takeState appends a state as it is told from the device's bytes.
func (t turned) takeState(v []float32, buf []byte) []float32 {
	if t.count == 0 {
		return takeFloats(v, buf)
	}
	for m := range t.count {
		for c := range t.cols {
			for r := range t.rows {
				v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(buf[4*((m*t.rows+r)*t.cols+c):])))
			}
		}
	}
	return v
}

// stateBytes are the device's bytes of a state as it is told.
func (t turned) stateBytes(v []float32) []byte {
	if t.count == 0 {
		return appendFloats(nil, v)
	}
	buf := make([]byte, 4*len(v))
	for m := range t.count {
		for c := range t.cols {
			for r := range t.rows {
				binary.LittleEndian.PutUint32(buf[4*((m*t.rows+r)*t.cols+c):], math.Float32bits(v[(m*t.cols+c)*t.rows+r]))
			}
		}
	}
	return buf
}
