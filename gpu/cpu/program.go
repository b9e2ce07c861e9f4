//go:build cgo

package cpu

// #include "cpu.h"
import "C"

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"ganglion/gpu/ops"
	"ganglion/plugins/rowstats"
)

// Program is a plan compiled for a shape. One call into C replays it for a batch.
type Program struct {
	rt    *Runtime
	shape ops.Shape
	c     *C.gl_prog
	outAt int // floats per row of the per-output arena
	logit int // where the logits start in it

	memory    block     // c and all it points to
	top       block     // ids and logits of WantTop
	peaks     []float32 // of Want.Stats
	posScale  []float32
	posScales []*ops.PosScale
	scales    []float32 // strengths of the adapters: [rows][adapters]
	active    []int32   // [adapters] whether any row has a strength
	lists     []int32   // of the batch: see listAt
	closed    bool
}

// stride rounds a row of n floats up to an odd number of cache lines: rows an even
// power of two apart would share one set of the first-level cache.
func stride(n int) int { return (n+15)/16*16 | 16 }

// Compile prepares a program for batches of up to s.Rows rows and s.Outs outputs.
func (r *Runtime) Compile(s ops.Shape) (ops.Program, error) {
	if r.closed {
		return nil, fmt.Errorf("cpu: compile: %w", ops.ErrClosed)
	}
	if s.Rows <= 0 || s.Rows > r.opts.MaxRows || s.Outs < 0 || s.Outs > s.Rows {
		return nil, fmt.Errorf("cpu: compile: %d rows and %d outputs of at most %d rows", s.Rows, s.Outs, r.opts.MaxRows)
	}
	layout := ops.NewLayout(r.plan)
	c := &compiler{r: r, shape: s, layout: layout, stride: [2]int{stride(layout.RowWidth), stride(layout.OutWidth)}}
	if err := c.compile(); err != nil {
		return nil, fmt.Errorf("cpu: compile: %w", err)
	}
	p := &Program{rt: r, shape: s, outAt: c.stride[1], logit: layout.Offset[r.plan.Logits.Buf] + r.plan.Logits.Off, posScales: c.posScales}
	if err := p.allocate(c); err != nil {
		p.Close()
		return nil, fmt.Errorf("cpu: compile: %w", err)
	}
	r.programs[p] = struct{}{}
	return p, nil
}

// allocate lays the program out in memory outside the Go heap.
func (p *Program) allocate(c *compiler) error {
	r, rows, outs := p.rt, p.shape.Rows, p.shape.Outs
	blocks := (r.plan.Vocab + C.GL_LSE - 1) / C.GL_LSE
	var m carver
	for pass := range 2 {
		if pass == 1 {
			var err error
			if p.memory, err = newBlock("program", m.at, false); err != nil {
				return err
			}
			m = carver{b: p.memory}
		}
		prog := (*C.gl_prog)(m.take(C.sizeof_gl_prog))
		list := m.take(int64(len(c.ops)) * C.sizeof_gl_op)
		counters := m.take(int64(len(c.ops)) * 64)
		heads := m.take(int64(outs) * C.sizeof_gl_head)
		part := m.take(int64(outs) * int64(3*r.opts.Threads+blocks) * 4)
		scale := m.take(int64(len(c.posScales)) * int64(rows) * 4)
		scales, active := p.carveScales(&m)
		lists := p.carveLists(&m)
		for i := range c.ops {
			c.ops[i].mats, c.ops[i].nmats = place(&m, c.mats[i])
			c.ops[i].chunks, c.ops[i].nchunks = place(&m, c.chunks[i])
		}
		if pass == 0 {
			continue
		}
		copy(unsafe.Slice((*C.gl_op)(list), len(c.ops)), c.ops)
		p.posScale = unsafe.Slice((*float32)(scale), len(c.posScales)*rows)
		p.c = prog
		*prog = C.gl_prog{
			ops: (*C.gl_op)(list), nops: C.int32_t(len(c.ops)), embed_width: C.int32_t(r.plan.Embed),
			embed_stride: C.int32_t(r.plan.EmbedWidth()), nspans: C.int32_t(r.plan.Spans),
			exact: flag(r.opts.Numerics == ops.Exact), kv_type: C.int32_t(r.opts.KV), slot_pages: C.int32_t(r.paging.PerSlot),
			slots: C.int32_t(r.opts.Slots), threads: C.int32_t(r.opts.Threads),
			quant_stride: C.int64_t((c.quantCols + 31) / 32), quant_bytes: r.quantBytes(), partial: (*C.float)(r.partial.p),
			scratch: (**C.float)(r.threads.p), head_part: (*C.float)(part), heads: (*C.gl_head)(heads),
			counters: (*C.int32_t)(counters), pos_scale: (*C.float)(scale),
			mid: (*C.float)(r.mid.p), mid_stride: C.int64_t(r.plan.LowRankWidth()),
		}
		p.keepScales(scales, active)
		prog.lists = (*C.int32_t)(lists)
	}
	if err := grow("output activations", &r.outs, int64(outs)*int64(c.stride[1])*4); err != nil {
		return err
	}
	if err := grow("activations", &r.rows, int64(rows)*int64(c.stride[0])*4); err != nil {
		return err
	}
	return grow("quantised activations", &r.quant, int64(rows)*int64(p.c.quant_stride)*int64(p.c.quant_bytes))
}

// quantBytes is the size of 32 quantised activations.
func (r *Runtime) quantBytes() C.int64_t {
	if r.opts.Numerics == ops.Exact {
		return C.sizeof_gl_wblk
	}
	return C.sizeof_gl_qblk
}

// place copies a list into the block; without a block it only measures.
func place[T any](m *carver, list []T) (*T, C.int32_t) {
	var zero T
	if len(list) == 0 {
		return nil, 0
	}
	at := (*T)(m.take(int64(len(list)) * int64(unsafe.Sizeof(zero))))
	if at != nil {
		copy(unsafe.Slice(at, len(list)), list)
	}
	return at, C.int32_t(len(list))
}

func (p *Program) bytes() int64 { return p.memory.bytes + p.top.bytes }

// Run executes one batch. Once its buffers have grown it allocates nothing.
func (p *Program) Run(b *ops.Batch, res *ops.Result) error {
	r := p.rt
	if p.closed || r.closed {
		return fmt.Errorf("cpu: run: %w", ops.ErrClosed)
	}
	if err := b.CheckRun(r.plan, r.opts, r.paging, p.shape); err != nil {
		return err
	}
	if err := p.prepareHeads(b); err != nil {
		return err
	}
	last := int32(0)
	for i, pos := range b.Pos {
		last = max(last, pos)
		for k, o := range p.posScales {
			p.posScale[k*p.shape.Rows+i] = o.At(int(pos))
		}
	}
	for _, pos := range b.Rotary {
		last = max(last, pos)
	}
	p.setScales(b)
	p.setLists(b)
	r.needAngles(int(last))
	p.c.arena[0], p.c.arena[1] = (*C.float)(r.rows.p), (*C.float)(r.outs.p)
	p.c.quant = (*C.uint8_t)(r.quant.p)
	start := time.Since(r.opened)
	stolen := C.gl_run(r.pool, r.kernels, p.c, C.int(r.pace.next(start)), ints(b.Tokens), ints(b.Pos), ints(b.Slot), ints(b.Outs),
		ints(b.Pages), (*C.float)(unsafe.SliceData(b.Embeds)), ints(b.Rotary),
		(*C.int32_t)(unsafe.Pointer(unsafe.SliceData(b.Spans))), (*C.int32_t)(unsafe.Pointer(b.Stop)), C.int(len(b.Tokens)), C.int(len(b.Outs)))
	end := time.Since(r.opened)
	r.pace.ran(end, end-start, time.Duration(stolen))
	if b.Stop.Stopped() {
		return fmt.Errorf("cpu: run: %w", ops.ErrStopped)
	}
	p.readHeads(b, res)
	return nil
}

// ints is the address of a slice for the duration of a call.
func ints(s []int32) *C.int32_t { return (*C.int32_t)(unsafe.SliceData(s)) }

// prepareHeads gives the heads that want the best tokens room for them.
func (p *Program) prepareHeads(b *ops.Batch) error {
	total := 0
	for _, w := range b.Want {
		if w.Kind == ops.WantTop {
			total += w.K
		}
	}
	if err := grow("best tokens", &p.top, int64(total)*8); err != nil {
		return fmt.Errorf("cpu: run: %w", err)
	}
	heads := unsafe.Slice(p.c.heads, len(b.Want))
	at := 0
	for i, w := range b.Want {
		heads[i].k = 0
		if w.Kind == ops.WantTop {
			heads[i].k = C.int32_t(w.K)
			heads[i].ids = (*C.int32_t)(unsafe.Add(p.top.p, at))
			heads[i].logits = (*C.float)(unsafe.Add(p.top.p, at+4*w.K))
			at += 8 * w.K
		}
	}
	return nil
}

func (p *Program) readHeads(b *ops.Batch, res *ops.Result) {
	res.Heads = res.Heads[:0]
	heads := unsafe.Slice(p.c.heads, len(b.Want))
	for i, w := range b.Want {
		h := &heads[i]
		row := p.rt.outs.floats(i*p.outAt+p.logit, p.rt.plan.Vocab)
		if h.bad >= 0 {
			err := fmt.Errorf("cpu: %s: output %d: logit of token %d is %v", p.rt.plan.Name, i, h.bad, row[h.bad])
			res.Heads = append(res.Heads, ops.Head{Err: err})
			continue
		}
		head := ops.Head{Best: int32(h.best), Max: float32(h.max), LogSumExp: float32(h.lse)}
		if w.Stats {
			head.Stats = p.stats(row)
		}
		switch w.Kind {
		case ops.WantTop:
			head.IDs = unsafe.Slice((*int32)(h.ids), w.K)
			head.Logits = unsafe.Slice((*float32)(h.logits), w.K)
		case ops.WantRow:
			head.Row = row
		}
		res.Heads = append(res.Heads, head)
	}
}

// stats are the statistics of a row without what is not finite.
func (p *Program) stats(row []float32) rowstats.Stats {
	n := rowstats.PeaksOf(len(row))
	p.peaks = slices.Grow(p.peaks[:0], n)[:n]
	s := scan{p.rt.kernels}
	pivot := rowstats.Pivot(row)
	var m rowstats.Moments
	m.Count, m.LargestAt, m.First, m.Second, m.PositiveInf = s.Moments(row, pivot, p.peaks)
	m.Largest = row[m.LargestAt]
	return rowstats.Describe(pivot, &m, func() (mass rowstats.Mass) {
		mass.Sum, mass.Distance = s.Mass(row, m.Largest)
		return mass
	})
}

// Close frees the program. It may be called twice.
func (p *Program) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	delete(p.rt.programs, p)
	p.memory.free()
	p.top.free()
	p.c = nil
	return nil
}
