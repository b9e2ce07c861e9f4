package ref

import (
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// cache is one layer's keys and values for all slots. Position p of a sequence
// lives in cell p mod cells.
type cache struct {
	cells        int
	keys, values store // [slots, cells, KVHeads·KeyDim], [slots, cells, KVHeads·ValueDim]
}

func newCache(c ops.Cache, o ops.Options) *cache {
	n := c.Cells(o.Context, o.MaxRows)
	return &cache{
		cells:  n,
		keys:   newStore(c.KVHeads*c.KeyDim, n*o.Slots, o.KV),
		values: newStore(c.KVHeads*c.ValueDim, n*o.Slots, o.KV),
	}
}

// cell is the index of a slot's position in the stores.
func (c *cache) cell(slot, position int32) int {
	return int(slot)*c.cells + int(position)%c.cells
}

func (c *cache) bytes() int64 { return c.keys.bytes() + c.values.bytes() }

// store is a table of vectors, as halves or as they are.
type store struct {
	width int
	half  []uint16
	full  []float32
}

func newStore(width, cells int, kv ops.KVType) store {
	if kv == ops.KVF32 {
		return store{width: width, full: make([]float32, width*cells)}
	}
	return store{width: width, half: make([]uint16, width*cells)}
}

func (s *store) bytes() int64 { return int64(len(s.half))*2 + int64(len(s.full))*4 }

func (s *store) put(cell int, x []float32) {
	at := cell * s.width
	if s.full != nil {
		copy(s.full[at:], x)
		return
	}
	for i, v := range x {
		s.half[at+i] = tensor.F32ToF16(v)
	}
}

func (s *store) get(cell int, x []float32) {
	at := cell * s.width
	if s.full != nil {
		copy(x[:s.width], s.full[at:])
		return
	}
	for i, h := range s.half[at : at+s.width] {
		x[i] = tensor.F16ToF32(h)
	}
}

// kvStore writes the rows' keys and values at their positions.
func (p *Program) kvStore(o *ops.KVStore) {
	c := p.rt.caches[o.Cache]
	for r := range p.batch.Tokens {
		cell := c.cell(p.batch.Slot[r], p.batch.Pos[r])
		c.keys.put(cell, p.row(o.K, r))
		c.values.put(cell, p.row(o.V, r))
	}
}
