//go:build cgo

package cpu

// #include "cpu.h"
import "C"

import (
	"fmt"
	"unsafe"

	"ganglion/gpu/ops"
)

// block is memory outside the Go heap: zeroed, page-aligned, committed when touched.
// Kernels keep pointers into it between calls, which they may not do with Go memory.
type block struct {
	p     unsafe.Pointer
	bytes int64
}

// newBlock maps bytes; huge asks for large pages, which streams of weights want.
func newBlock(what string, bytes int64, huge bool) (block, error) {
	h := C.int(0)
	if huge {
		h = 1
	}
	p := C.gl_map(C.int64_t(bytes), h)
	if p == nil {
		return block{}, fmt.Errorf("%s: %d bytes: %w", what, bytes, ops.ErrOutOfMemory)
	}
	return block{p, bytes}, nil
}

func (b *block) free() {
	C.gl_unmap(b.p, C.int64_t(b.bytes))
	*b = block{}
}

// floats is n floats from element at on. Sound because callers stay inside the bytes
// they mapped and the block outlives the runtime's slices.
func (b block) floats(at, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(b.p, 4*at)), n)
}

// copyPart copies part src of the block's n equal parts over part dst.
func (b block) copyPart(n, dst, src int) {
	size := int(b.bytes) / n
	all := unsafe.Slice((*byte)(b.p), b.bytes)
	copy(all[dst*size:(dst+1)*size], all[src*size:(src+1)*size])
}

// array is the block as n values of T.
func array[T any](b block, n int) []T { return unsafe.Slice((*T)(b.p), n) }

// carver hands out parts of one block, aligned to cache lines. A first pass with no
// block only measures.
type carver struct {
	b  block
	at int64
}

func (c *carver) take(bytes int64) unsafe.Pointer {
	at := c.at
	c.at += (bytes + 63) &^ 63
	if c.b.p == nil {
		return nil
	}
	return unsafe.Add(c.b.p, at)
}
