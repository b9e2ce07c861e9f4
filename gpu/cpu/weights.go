//go:build cgo

package cpu

// #include "cpu.h"
import "C"

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// layoutOf chooses how a matrix stands in memory; doc.go tells the layouts.
func layoutOf(w *ops.Weight) C.int32_t {
	switch w.Type {
	case tensor.F32:
		return C.GL_F32
	case tensor.F16:
		return C.GL_F16
	case tensor.BF16:
		return C.GL_BF16
	}
	if l := C.gl_layout_of(C.int(w.Type)); l >= 0 {
		return l
	}
	return C.GL_Q8C
}

// describe fills the C description of every weight and measures the packed ones.
func (r *Runtime) describe(uses map[*ops.Weight]*ops.WeightUse) error {
	var err error
	n := len(r.plan.Weights)
	if r.weightTable, err = newBlock("weight table", int64(n)*C.sizeof_gl_weight, false); err != nil {
		return err
	}
	r.weights = make(map[*ops.Weight]*C.gl_weight, n)
	for i, w := range r.plan.Weights {
		c := &array[C.gl_weight](r.weightTable, n)[i]
		rows := w.Rows * max(w.Experts, 1)
		// The file's bytes may be Go memory (tests) or a mapping: pinning makes the
		// first safe to keep in C memory and leaves the second alone.
		r.pinner.Pin(&w.Data[0])
		c.data = (*C.uint8_t)(unsafe.Pointer(&w.Data[0]))
		c.row_bytes = C.int64_t(len(w.Data) / rows)
		c._type = C.int32_t(w.Type)
		c.cols, c.rows, c.experts = C.int32_t(w.Cols), C.int32_t(w.Rows), C.int32_t(max(w.Experts, 1))
		c.tiles = C.int32_t((w.Rows + tileRows - 1) / tileRows)
		if u := uses[w]; u != nil && u.Matrix {
			c.layout = layoutOf(w)
			if c.layout >= C.GL_Q8 {
				c.tile_bytes = C.gl_tile_bytes(C.int(c.layout), C.int(w.Cols))
			}
		}
		r.weights[w] = c
	}
	return nil
}

// tileRows is the number of weight rows that are interleaved.
const tileRows = C.GL_TILE

// packTask is a range of tiles of one weight.
type packTask struct {
	w        *ops.Weight
	c        *C.gl_weight
	from, to int64
	bytes    int64 // of the file
}

// pack repacks the matrices with all threads and widens the vectors.
func (r *Runtime) pack(ctx context.Context, uses map[*ops.Weight]*ops.WeightUse, progress func(done, total int64)) error {
	var sizes, small carver
	var err error
	for pass := range 2 {
		if pass == 1 {
			if r.packed, err = newBlock("packed weights", sizes.at+packedSlack, true); err != nil {
				return err
			}
			if r.vectorData, err = newBlock("vectors", small.at, false); err != nil {
				return err
			}
			r.weightBytes = sizes.at + small.at
			sizes, small = carver{b: r.packed}, carver{b: r.vectorData}
		}
		for _, w := range r.plan.Weights {
			if c := r.weights[w]; c.tile_bytes > 0 {
				c.packed = (*C.uint8_t)(sizes.take(int64(c.tile_bytes) * int64(c.tiles) * int64(c.experts)))
			}
			u := uses[w]
			if u == nil || (!u.Vector && !widened(w, u)) {
				continue
			}
			n := w.Cols * w.Rows * max(w.Experts, 1)
			if p := small.take(int64(n) * 4); p != nil {
				v := unsafe.Slice((*float32)(p), n)
				if err := tensor.Dequantize(w.Type, v, w.Data); err != nil {
					return fmt.Errorf("weight %q: %w", w.Name, err)
				}
				r.vectors[w] = v
			}
		}
	}
	tasks, done := r.packTasks()
	if err := r.runPack(ctx, tasks, done, progress); err != nil {
		return err
	}
	for w, u := range uses { // packing was the last to read the file's bytes
		if c := r.weights[w]; widened(w, u) {
			c.data = (*C.uint8_t)(unsafe.Pointer(&r.vectors[w][0]))
			c._type, c.row_bytes = C.int32_t(tensor.F32), C.int64_t(4*w.Cols)
		}
	}
	return nil
}

// widened tells whether a weight is kept as float32 in place of the file's bytes: a
// factor of an adapter, which is small, of a type that no float kernel reads.
func widened(w *ops.Weight, u *ops.WeightUse) bool { return u.Factor && w.Type.Group() > 0 }

// packedSlack lets prefetches at the end of the last matrix stay inside the block.
const packedSlack = 8192

// packTasks cuts the packing into pieces of about a megabyte; done counts the bytes
// of weights that need none.
func (r *Runtime) packTasks() (tasks []packTask, done int64) {
	for _, w := range r.plan.Weights {
		c := r.weights[w]
		if c.tile_bytes == 0 {
			done += int64(len(w.Data))
			continue
		}
		total := int64(c.tiles) * int64(c.experts)
		step := max(1, 1<<20/int64(c.tile_bytes))
		for t := int64(0); t < total; t += step {
			to := min(t+step, total)
			tasks = append(tasks, packTask{w, c, t, to, int64(len(w.Data))*to/total - int64(len(w.Data))*t/total})
		}
	}
	return tasks, done
}

func (r *Runtime) runPack(ctx context.Context, tasks []packTask, done int64, progress func(done, total int64)) error {
	total := r.plan.WeightBytes()
	var mu sync.Mutex // guards done and the order of progress calls
	report := func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		done += n
		if progress != nil {
			progress(done, total)
		}
	}
	report(0)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.opts.Threads, len(tasks)) {
		wg.Go(func() {
			var row codesRow
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(len(tasks)) {
					return
				}
				tasks[i].run(&row)
				report(tasks[i].bytes)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// codesRow is one row of a type that is packed as codes: it has no layout of its own.
type codesRow struct {
	codes  []int8
	scales []float32 // for each 16 of them
}

// run packs the task's tiles; row is scratch that it may grow.
func (t packTask) run(row *codesRow) {
	if t.c.layout != C.GL_Q8C {
		C.gl_pack(t.c, C.int64_t(t.from), C.int64_t(t.to))
		return
	}
	if cols := t.w.Cols; len(row.codes) != cols {
		row.codes, row.scales = make([]int8, cols), make([]float32, cols/16)
	}
	for i := t.from; i < t.to; i++ {
		expert, first := int(i/int64(t.c.tiles)), int(i%int64(t.c.tiles))*tileRows
		for r := first; r < min(first+tileRows, t.w.Rows); r++ {
			t.packRow(row, expert, r)
		}
	}
}

// packRow puts row r of an expert where the matrix's layout has it.
func (t packTask) packRow(row *codesRow, expert, r int) {
	at := (expert*t.w.Rows + r) * int(t.c.row_bytes)
	// Validate has checked type and size: Codes cannot fail.
	if err := tensor.Codes(t.w.Type, row.codes, row.scales, nil, t.w.Data[at:at+int(t.c.row_bytes)]); err != nil {
		panic(fmt.Sprintf("cpu: validated weight %q: %v", t.w.Name, err))
	}
	tile := unsafe.Add(unsafe.Pointer(t.c.packed), int64(t.c.tile_bytes)*(int64(expert)*int64(t.c.tiles)+int64(r/tileRows)))
	C.gl_pack_codes((*C.uint8_t)(tile), C.int(r%tileRows), (*C.int8_t)(&row.codes[0]), (*C.float)(&row.scales[0]), C.int(t.w.Cols))
}
