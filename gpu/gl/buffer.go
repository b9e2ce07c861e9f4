//go:build cgo && (linux || windows)

package gl

// #include "gl.h"
import "C"

import (
	"fmt"
	"unsafe"

	"ganglion/gpu/device"
)

// buffer is a buffer object.
type buffer struct {
	c      *context
	id     C.GLuint
	size   int64
	mapped []byte // host memory, nil where the buffer is not mapped
	closed bool
}

// hints are what OpenGL calls the usages.
var hints = map[device.Usage]C.GLenum{
	device.Weights:  0x88E4, // GL_STATIC_DRAW
	device.Scratch:  0x88EA, // GL_DYNAMIC_COPY
	device.Upload:   0x88E8, // GL_DYNAMIC_DRAW
	device.Readback: 0x88E9, // GL_DYNAMIC_READ
}

// NewBuffer makes a buffer of zeros.
func (c *context) NewBuffer(size int64, u device.Usage) (device.Buffer, error) {
	if err := c.usable("new buffer"); err != nil {
		return nil, err
	}
	hint, ok := hints[u]
	if size <= 0 || !ok {
		return nil, fmt.Errorf("gl: new buffer: %d bytes of usage %d", size, u)
	}
	if size > c.limits.BufferBytes {
		return nil, fmt.Errorf("gl: new buffer: %d bytes, the device takes %d: %w", size, c.limits.BufferBytes, device.ErrLimit)
	}
	b := &buffer{c: c, size: size}
	var err error
	c.call(func(g *C.struct_ggl) {
		var code C.GLenum
		var at unsafe.Pointer
		var keep *unsafe.Pointer
		if c.found.mapped && (u == device.Upload || u == device.Readback) {
			keep = &at
		}
		result := C.ggl_buffer_new(g, C.GLsizeiptr(whole(size)), hint, &b.id, keep, &code)
		if err = c.check(g, "new buffer", result, code); err == nil && at != nil {
			// The driver keeps this memory in place until the buffer is deleted.
			b.mapped = unsafe.Slice((*byte)(at), size)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%w (%d bytes)", err, size)
	}
	return b, nil
}

// whole rounds a size up to whole vectors of four words, so that a shader that reads its
// last words as uvec4 stays inside.
func whole(size int64) int64 { return (size + 15) &^ 15 }

// Size is the size asked for.
func (b *buffer) Size() int64 { return b.size }

// inside says whether a transfer may begin.
func (b *buffer) inside(place string, offset int64, n int) error {
	if b.closed {
		return fmt.Errorf("gl: %s: buffer: %w", place, device.ErrClosed)
	}
	if err := b.c.usable(place); err != nil {
		return err
	}
	if offset < 0 || offset > b.size || int64(n) > b.size-offset {
		return fmt.Errorf("gl: %s: %d bytes at %d of a buffer of %d", place, n, offset, b.size)
	}
	return nil
}

// Write copies data into the buffer.
func (b *buffer) Write(offset int64, data []byte) error {
	if err := b.inside("write", offset, len(data)); err != nil || len(data) == 0 {
		return err
	}
	if b.mapped != nil {
		copy(b.mapped[offset:], data)
		return nil
	}
	var err error
	b.c.call(func(g *C.struct_ggl) {
		var code C.GLenum
		result := C.ggl_buffer_write(g, b.id, C.GLintptr(offset), C.GLsizeiptr(len(data)), bytesAt(data), &code)
		err = b.c.check(g, "write", result, code)
	})
	return err
}

// Read copies from the buffer into data.
func (b *buffer) Read(offset int64, data []byte) error {
	if err := b.inside("read", offset, len(data)); err != nil || len(data) == 0 {
		return err
	}
	if b.mapped != nil {
		copy(data, b.mapped[offset:])
		return nil
	}
	var err error
	b.c.call(func(g *C.struct_ggl) {
		var code C.GLenum
		result := C.ggl_buffer_read(g, b.id, C.GLintptr(offset), C.GLsizeiptr(len(data)), bytesAt(data), &code)
		err = b.c.check(g, "read", result, code)
	})
	return err
}

// Close frees the memory.
func (b *buffer) Close() error {
	if !b.closed {
		b.closed, b.mapped = true, nil
		b.c.closings++
		b.c.free(func(g *C.struct_ggl) { C.ggl_buffer_delete(g, b.id) })
	}
	return nil
}
