package ref

import (
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// cache is one layer's keys and values: the pages of its group's pool, each of
// ops.PageSize cells.
type cache struct {
	group, pages int
	keys, values store // [pages·PageSize, KVHeads·KeyDim], [pages·PageSize, KVHeads·ValueDim]
}

func newCache(c ops.Cache, group, pages int, kv ops.KVType) *cache {
	n := pages * ops.PageSize
	return &cache{
		group: group, pages: pages,
		keys:   newStore(c.KVHeads, c.KeyDim, n, kv),
		values: newStore(c.KVHeads, c.ValueDim, n, kv),
	}
}

// copyPage copies the cells of a page.
func (c *cache) copyPage(dst, src int) {
	c.keys.copyCells(dst*ops.PageSize, src*ops.PageSize, ops.PageSize)
	c.values.copyCells(dst*ops.PageSize, src*ops.PageSize, ops.PageSize)
}

func (c *cache) bytes() int64 { return c.keys.bytes() + c.values.bytes() }

// store is a table of vectors of heads in the type of the cache: one of half, full,
// and bytes with scales is used.
type store struct {
	heads, dim int
	half       []uint16 // f16
	full       []float32
	quants     []int8   // q8_0: [cells, heads, dim]
	scales     []uint16 // q8_0: [cells, heads, blocks of a head]
}

func newStore(heads, dim, cells int, kv ops.KVType) store {
	s := store{heads: heads, dim: dim}
	switch n := heads * dim * cells; kv {
	case ops.KVF32:
		s.full = make([]float32, n)
	case ops.KVQ8:
		s.quants, s.scales = make([]int8, n), make([]uint16, heads*s.blocks()*cells)
	default:
		s.half = make([]uint16, n)
	}
	return s
}

// width is the number of values in a cell, blocks the number of scales of a head.
func (s *store) width() int  { return s.heads * s.dim }
func (s *store) blocks() int { return (s.dim + ops.KVBlock - 1) / ops.KVBlock }

func (s *store) bytes() int64 {
	return int64(len(s.half))*2 + int64(len(s.full))*4 + int64(len(s.quants)) + int64(len(s.scales))*2
}

func (s *store) put(cell int, x []float32) {
	at := cell * s.width()
	switch {
	case s.full != nil:
		copy(s.full[at:], x)
	case s.quants != nil:
		s.eachBlock(cell, func(from, to, scale int) {
			s.scales[scale] = ops.QuantizeKV(x[from:to], s.quants[at+from:at+to])
		})
	default:
		for i, v := range x {
			s.half[at+i] = tensor.F32ToF16(v)
		}
	}
}

func (s *store) get(cell int, x []float32) {
	at := cell * s.width()
	switch {
	case s.full != nil:
		copy(x[:s.width()], s.full[at:])
	case s.quants != nil:
		s.eachBlock(cell, func(from, to, scale int) {
			d := tensor.F16ToF32(s.scales[scale])
			for i := from; i < to; i++ {
				x[i] = float32(s.quants[at+i]) * d
			}
		})
	default:
		for i, h := range s.half[at : at+s.width()] {
			x[i] = tensor.F16ToF32(h)
		}
	}
}

// eachBlock calls f with the columns of each block of a cell and the index of its
// scale.
func (s *store) eachBlock(cell int, f func(from, to, scale int)) {
	scale := cell * s.heads * s.blocks()
	for h := range s.heads {
		for d := 0; d < s.dim; d += ops.KVBlock {
			f(h*s.dim+d, h*s.dim+min(d+ops.KVBlock, s.dim), scale)
			scale++
		}
	}
}

func (s *store) copyCells(dst, src, n int) {
	w, b := s.width(), s.heads*s.blocks()
	copyRange(s.half, dst*w, src*w, n*w)
	copyRange(s.full, dst*w, src*w, n*w)
	copyRange(s.quants, dst*w, src*w, n*w)
	copyRange(s.scales, dst*b, src*b, n*b)
}

func copyRange[T any](s []T, dst, src, n int) {
	if s != nil {
		copy(s[dst:dst+n], s[src:src+n])
	}
}

// cell is where a slot's position lies in the stores of a cache.
func (p *Program) cell(c *cache, slot, position int32) int {
	page := p.rt.paging.Table(p.batch.Pages, c.group, int(slot))[position/ops.PageSize]
	return int(page)*ops.PageSize + int(position)%ops.PageSize
}

// kvStore writes the rows' keys and values at their positions.
func (p *Program) kvStore(o *ops.KVStore) {
	c := p.rt.caches[o.Cache]
	for r := range p.batch.Tokens {
		cell := p.cell(c, p.batch.Slot[r], p.batch.Pos[r])
		c.keys.put(cell, p.row(o.K, r))
		c.values.put(cell, p.row(o.V, r))
	}
}
