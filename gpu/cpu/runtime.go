//go:build cgo

package cpu

// #include "cpu.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"ganglion/gpu/ops"
)

// Runtime is a loaded plan: repacked weights, caches, states and the thread pool. It
// belongs to one goroutine at a time.
type Runtime struct {
	kernels *C.gl_kernels
	plan    *ops.Plan
	opts    ops.Options
	paging  *ops.Paging
	pool    *C.struct_gl_pool
	pinner  runtime.Pinner

	weightTable, packed, vectorData block
	weights                         map[*ops.Weight]*C.gl_weight
	vectors                         map[*ops.Weight][]float32 // widened, outside the Go heap
	weightBytes                     int64

	caches []kvBlocks // by Plan.Caches
	states []block    // by Plan.States: [slots][floats]
	tables []angles   // by Plan.Tables

	// Scratch that all programs share, for only one runs at a time.
	rows    block // per-row activations of the largest program
	outs    block // per-output ones; the logits are handed out from here
	quant   block // quantised activations of the largest program
	partial block // attention of few rows
	threads block // pointers to and scratch of each thread
	mid     block // A·x of low-rank updates: [MaxRows][LowRankWidth]

	programs map[*Program]struct{}
	pace     pace
	opened   time.Time // the zero of pace's clock
	closed   bool
}

// kvBlocks is one layer's cache: [pages][KV heads][ops.PageSize][head] each.
type kvBlocks struct{ keys, values block }

// angles is a RoPE table, filled up to the positions that were needed so far.
type angles struct {
	half   int
	filled int
	b      block // cos [context][half], then sin
	axes   block // RoPETable.Axes: [half] bytes; nil: none
}

func (r *Runtime) load(ctx context.Context, progress func(done, total int64)) error {
	uses := r.plan.WeightUses()
	r.vectors = make(map[*ops.Weight][]float32)
	r.programs = make(map[*Program]struct{})
	r.pace, r.opened = newPace(r.opts.Threads), time.Now()
	for _, step := range []func() error{
		func() error { return r.describe(uses) },
		func() error { return r.pack(ctx, uses, progress) },
		r.newCaches,
		r.newScratch,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if r.pool = C.gl_pool_new(C.int(r.opts.Threads)); r.pool == nil {
		return fmt.Errorf("%d threads: %w", r.opts.Threads, ops.ErrOutOfMemory)
	}
	return nil
}

func (r *Runtime) newCaches() error {
	r.paging = ops.NewPaging(r.plan, r.opts)
	for i, c := range r.plan.Caches {
		heads := int64(r.paging.Groups[r.paging.Of[i]].Pages) * ops.PageSize * int64(c.KVHeads)
		keys, err := newBlock("KV cache "+c.Name, heads*int64(r.opts.KV.Bytes(c.KeyDim)), true)
		if err != nil {
			return err
		}
		values, err := newBlock("KV cache "+c.Name, heads*int64(r.opts.KV.Bytes(c.ValueDim)), true)
		r.caches = append(r.caches, kvBlocks{keys, values})
		if err != nil {
			return err
		}
	}
	for _, s := range r.plan.States {
		b, err := newBlock("state "+s.Name, int64(s.Floats)*int64(r.opts.Slots)*4, false)
		if err != nil {
			return err
		}
		r.states = append(r.states, b)
	}
	for _, t := range r.plan.Tables {
		b, err := newBlock("RoPE table", int64(r.opts.Context)*int64(t.NRot)*4, false)
		if err != nil {
			return err
		}
		axes, err := newAxes(t)
		r.tables = append(r.tables, angles{half: t.NRot / 2, b: b, axes: axes})
		if err != nil {
			return err
		}
	}
	return nil
}

// newAxes copies the axes of a table that has some.
func newAxes(t *ops.RoPETable) (block, error) {
	if t.Axes == nil {
		return block{}, nil
	}
	b, err := newBlock("axes", int64(len(t.Axes)), false)
	if err == nil {
		copy(array[uint8](b, len(t.Axes)), t.Axes)
	}
	return b, err
}

// angleStep is how many positions a RoPE table grows by.
const angleStep = 256

// needAngles fills the tables up to position pos. Decoding touches them once in
// angleStep tokens.
func (r *Runtime) needAngles(pos int) {
	for i := range r.tables {
		t := &r.tables[i]
		if pos < t.filled {
			continue
		}
		to := min(r.opts.Context, (pos/angleStep+1)*angleStep)
		cos, sin := r.plan.Tables[i].Angles(t.filled, to-t.filled)
		copy(t.b.floats(t.filled*t.half, len(cos)), cos)
		copy(t.b.floats((r.opts.Context+t.filled)*t.half, len(sin)), sin)
		t.filled = to
	}
}

// expertScratch is what op_expertmatmul needs of a thread: a widened tile, rows of
// input and output, and the experts that each row chose.
func (r *Runtime) expertScratch(o *ops.ExpertMatMul) int {
	step := chunkTiles(r.weights[o.W], 1, r.opts.Threads)
	experts, pairs := max(o.W.Experts, 1), r.opts.MaxRows*o.IDs.Width
	return tileFloats(o.W.Cols) + C.GL_MOE_ROWS*(quantFloats(o.W.Cols)+step*tileRows) + 2*experts + 1 + pairs
}

// newScratch allocates what does not depend on a program's shape. The sizes follow
// the kernels: those of k_exact.h widen a tile of rows, op_attention keeps the queries, the scores
// and the partial results of four heads, op_route three values per expert and a mark.
func (r *Runtime) newScratch() error {
	thread, partial := 0, 0
	for _, op := range r.plan.Ops {
		switch o := op.(type) {
		case *ops.MatMul:
			thread = max(thread, tileFloats(o.W.Cols))
		case *ops.ExpertMatMul:
			thread = max(thread, r.expertScratch(o))
		case *ops.LowRank:
			thread = max(thread, tileFloats(max(o.A.Cols, o.B.Cols)))
		case *ops.Route:
			thread = max(thread, 4*o.In.Width)
		case *ops.RoPE:
			thread = max(thread, r.plan.Tables[o.Table].NRot)
		case *ops.Attention:
			k := r.plan.Caches[o.Cache]
			part := o.Chunks(r.opts) * ops.PartialFloats(k.ValueDim, r.opts.Numerics)
			thread = max(thread, 4*ops.KVChunk+4*k.KeyDim+ops.RowHeads*part)
			partial = max(partial, ops.SplitHeads*r.opts.Threads*part)
		}
	}
	var err error
	if r.partial, err = newBlock("attention", int64(partial)*4, false); err != nil {
		return err
	}
	if r.mid, err = newBlock("low-rank updates", int64(r.plan.LowRankWidth())*int64(r.opts.MaxRows)*4, false); err != nil {
		return err
	}
	thread = (thread + 1023) &^ 1023 // a page each: no line belongs to two threads
	n := r.opts.Threads
	head := (8*n + 4095) &^ 4095
	if r.threads, err = newBlock("thread scratch", int64(head)+int64(n)*int64(thread)*4, false); err != nil {
		return err
	}
	pointers := array[*C.float](r.threads, n)
	for t := range pointers {
		pointers[t] = (*C.float)(unsafe.Add(r.threads.p, head+t*thread*4))
	}
	return nil
}

// tileFloats is the size of a tile of widened rows, padded to whole 16 lanes.
func tileFloats(cols int) int { return tileRows * ((cols + 15) &^ 15) }

// quantFloats is the size of cols activations in any form, as floats and as the blocks
// of exact mode.
func quantFloats(cols int) int { return max(cols, (cols+31)/32*C.sizeof_gl_wblk/4) }

// grow makes b at least bytes large; what it held is lost. When there is no memory
// b stays as it was, for smaller programs still use it.
func grow(what string, b *block, bytes int64) error {
	if b.p != nil && b.bytes >= bytes {
		return nil
	}
	larger, err := newBlock(what, bytes, true)
	if err != nil {
		return err
	}
	b.free()
	*b = larger
	return nil
}

// CopyPage copies a page of every cache of a group.
func (r *Runtime) CopyPage(group, dst, src int) error {
	if r.closed {
		return fmt.Errorf("cpu: copy page: %w", ops.ErrClosed)
	}
	if err := r.paging.CheckCopy(group, dst, src); err != nil {
		return err
	}
	pages := r.paging.Groups[group].Pages
	for i, c := range r.caches {
		if r.paging.Of[i] == group {
			c.keys.copyPart(pages, dst, src)
			c.values.copyPart(pages, dst, src)
		}
	}
	return nil
}

// SaveState copies the recurrent state of a slot into into[:0]: the plan's states one
// after another. It is empty when the plan has none.
func (r *Runtime) SaveState(slot int, into []float32) ([]float32, error) {
	if err := r.checkSlot("save state", slot); err != nil {
		return nil, err
	}
	return ops.SaveStates(r.statesOf(slot), into), nil
}

// LoadState puts a saved state back; nil sets the state of position 0.
func (r *Runtime) LoadState(slot int, saved []float32) error {
	if err := r.checkSlot("load state", slot); err != nil {
		return err
	}
	return ops.LoadStates(r.statesOf(slot), saved)
}

// statesOf is the plan's states of one slot.
func (r *Runtime) statesOf(slot int) [][]float32 {
	states := make([][]float32, len(r.states))
	for i := range states {
		states[i] = r.state(i, slot)
	}
	return states
}

func (r *Runtime) state(i, slot int) []float32 {
	n := r.plan.States[i].Floats
	return r.states[i].floats(slot*n, n)
}

func (r *Runtime) checkSlot(what string, slot int) error {
	if r.closed {
		return fmt.Errorf("cpu: %s: %w", what, ops.ErrClosed)
	}
	if slot < 0 || slot >= r.opts.Slots {
		return fmt.Errorf("cpu: %s: slot %d of %d", what, slot, r.opts.Slots)
	}
	return nil
}

// Memory tells what was reserved. Caches and scratch are committed when they are
// first written.
func (r *Runtime) Memory() ops.Memory {
	m := ops.Memory{Weights: r.weightBytes}
	for _, c := range r.caches {
		m.KV += c.keys.bytes + c.values.bytes
	}
	for _, s := range r.states {
		m.KV += s.bytes
	}
	for _, t := range r.tables {
		m.Scratch += t.b.bytes + t.axes.bytes
	}
	m.Scratch += r.rows.bytes + r.outs.bytes + r.quant.bytes + r.partial.bytes + r.threads.bytes + r.mid.bytes
	for p := range r.programs {
		m.Scratch += p.bytes()
	}
	return m
}

// Close stops the threads and frees everything, open programs too. It may be called
// twice.
func (r *Runtime) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	for p := range r.programs {
		p.Close()
	}
	C.gl_pool_free(r.pool)
	for _, c := range r.caches {
		c.keys.free()
		c.values.free()
	}
	for i := range r.states {
		r.states[i].free()
	}
	for i := range r.tables {
		r.tables[i].b.free()
		r.tables[i].axes.free()
	}
	for _, b := range []*block{&r.weightTable, &r.packed, &r.vectorData, &r.rows, &r.outs, &r.quant, &r.partial, &r.threads, &r.mid} {
		b.free()
	}
	r.pinner.Unpin()
	*r = Runtime{plan: r.plan, opts: r.opts, closed: true}
	return nil
}
