//go:build cgo

package vulkan

// #include "gv.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"ganglion/gpu/device"
)

var _ device.Buffer = (*Buffer)(nil)

// Buffer is a storage buffer in an allocation of its own.
type Buffer struct {
	d        *Device
	c        C.gv_buffer
	size     int64
	mapped   []byte // nil when the host cannot see the memory
	coherent bool
	users    int // programs that use it
	closed   bool
}

// memoryType is a kind of memory of a device.
type memoryType = C.VkMemoryType

// texelBytes is the size of a texel, R32G32B32A32_UINT.
const texelBytes = 16

const (
	local    = C.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
	visible  = C.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
	coherent = C.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
	cached   = C.VK_MEMORY_PROPERTY_HOST_CACHED_BIT
)

// memoryWishes are the properties that memory for a usage should have, the best first.
// Memory that is read by the host should be cached: reading the rest is many times
// slower. Weights never fall back to the host's memory on a device with its own.
func memoryWishes(u device.Usage, share bool) []C.VkFlags {
	switch {
	case u == device.Readback:
		return []C.VkFlags{visible | cached | coherent, visible | cached, visible | coherent}
	case u == device.Upload:
		return []C.VkFlags{local | visible | coherent, visible | coherent}
	case share:
		return []C.VkFlags{local | visible | coherent, local}
	}
	return []C.VkFlags{local}
}

// memoryTypes gives the types that fulfil the wishes, the best first, each once.
func memoryTypes(all []memoryType, allowed C.uint32_t, wishes []C.VkFlags) []C.uint32_t {
	var order []C.uint32_t
	var taken C.uint32_t
	for _, w := range wishes {
		for i, t := range all {
			if bit := C.uint32_t(1) << i; allowed&^taken&bit != 0 && t.propertyFlags&w == w {
				taken |= bit
				order = append(order, C.uint32_t(i))
			}
		}
	}
	return order
}

// NewBuffer allocates memory that holds zeros.
func (d *Device) NewBuffer(size int64, u device.Usage) (device.Buffer, error) {
	if err := d.usable("buffer"); err != nil {
		return nil, err
	}
	if size <= 0 || u > device.Readback {
		return nil, fmt.Errorf("vulkan: buffer: %d bytes of usage %d", size, u)
	}
	if size > d.limits.BufferBytes {
		return nil, fmt.Errorf("vulkan: buffer: %d bytes, at most %d: %w", size, d.limits.BufferBytes, device.ErrLimit)
	}
	b, err := d.newBuffer(size, memoryWishes(u, d.caps.HostShare), u >= device.Upload || d.caps.HostShare)
	if err != nil {
		return nil, err
	}
	if err := b.zero(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// newBuffer allocates a buffer whose content is undefined; seen says that the host is to
// see it, if its memory allows.
func (d *Device) newBuffer(size int64, wishes []C.VkFlags, seen bool) (*Buffer, error) {
	place := fmt.Sprintf("buffer of %d bytes", size)
	if d.allocations >= clampInt(d.props.allocations) {
		return nil, fmt.Errorf("vulkan: %s: the driver allows %d allocations: %w", place, d.allocations, device.ErrLimit)
	}
	b := &Buffer{d: d, size: size}
	// Rounded up, so that the last bytes can be filled and read as words and texels.
	err := d.check(place, C.gv_buffer_create(d.c, C.uint64_t(size+texelBytes-1)/texelBytes*texelBytes, &b.c))
	if err == nil {
		err = b.allocate(place, wishes, seen)
	}
	if err != nil {
		C.gv_buffer_destroy(d.c, &b.c)
		return nil, err
	}
	d.allocations++
	d.buffers[b] = struct{}{}
	return b, nil
}

// allocate tries the types of memory in turn: a small heap that the host sees may be full
// where the next one is not.
func (b *Buffer) allocate(place string, wishes []C.VkFlags, seen bool) error {
	m := &b.d.props.memory
	if b.c.need > C.uint64_t(b.d.props.allocation_bytes) {
		return fmt.Errorf("vulkan: %s: takes %d bytes, at most %d: %w", place, b.c.need, b.d.props.allocation_bytes, device.ErrLimit)
	}
	err := fmt.Errorf("vulkan: %s: no memory of its kind: %w", place, device.ErrUnsupported)
	for _, t := range memoryTypes(m.memoryTypes[:m.memoryTypeCount], b.c.types, wishes) {
		flags := m.memoryTypes[t].propertyFlags
		see := C.int(0)
		if seen && flags&visible != 0 {
			see = 1
		}
		err = b.d.check(place, C.gv_buffer_allocate(b.d.c, &b.c, t, see))
		if err == nil {
			if see != 0 {
				// The mapping has at least size bytes and stays until the memory is freed.
				b.mapped = unsafe.Slice((*byte)(b.c.mapped), b.size)
				b.coherent = flags&coherent != 0
			}
			return nil
		}
		if b.c.memory != 0 || !errors.Is(err, device.ErrOutOfMemory) {
			return err // a buffer is bound once only
		}
	}
	return err
}

func (b *Buffer) zero() error {
	if b.mapped != nil {
		clear(b.mapped)
		return b.flush(0, b.size)
	}
	return b.d.staging.zero(b)
}

// Size is what NewBuffer was asked for.
func (b *Buffer) Size() int64 { return b.size }

// inside checks a range of the buffer.
func (b *Buffer) inside(place string, offset int64, n int) error {
	if b.closed {
		return fmt.Errorf("vulkan: %s: buffer: %w", place, device.ErrClosed)
	}
	if err := b.d.usable(place); err != nil {
		return err
	}
	if offset < 0 || offset > b.size || int64(n) > b.size-offset {
		return fmt.Errorf("vulkan: %s: %d bytes at %d of a buffer of %d", place, n, offset, b.size)
	}
	return nil
}

// Write copies data into the buffer.
func (b *Buffer) Write(offset int64, data []byte) error {
	if err := b.inside("write", offset, len(data)); err != nil || len(data) == 0 {
		return err
	}
	if b.mapped == nil {
		return b.d.staging.write(b, offset, data)
	}
	copy(b.mapped[offset:], data)
	return b.flush(offset, int64(len(data)))
}

// Read copies a part of the buffer into data.
func (b *Buffer) Read(offset int64, data []byte) error {
	if err := b.inside("read", offset, len(data)); err != nil || len(data) == 0 {
		return err
	}
	if b.mapped == nil {
		return b.d.staging.read(b, offset, data)
	}
	if err := b.invalidate(offset, int64(len(data))); err != nil {
		return err
	}
	copy(data, b.mapped[offset:])
	return nil
}

// atoms widens a range to what may be flushed or invalidated.
func (b *Buffer) atoms(offset, n int64) (at, size C.uint64_t) {
	atom := C.uint64_t(max(b.d.props.atom, 1))
	at = C.uint64_t(offset) / atom * atom
	end := (C.uint64_t(offset+n) + atom - 1) / atom * atom
	if end >= b.c.need {
		return at, C.VK_WHOLE_SIZE
	}
	return at, end - at
}

func (b *Buffer) flush(offset, n int64) error {
	if b.coherent {
		return nil
	}
	at, size := b.atoms(offset, n)
	return b.d.check("write", C.gv_flush(b.d.c, b.c.memory, at, size))
}

func (b *Buffer) invalidate(offset, n int64) error {
	if b.coherent {
		return nil
	}
	at, size := b.atoms(offset, n)
	return b.d.check("read", C.gv_invalidate(b.d.c, b.c.memory, at, size))
}

// Close frees the memory. It fails as long as a program uses the buffer, or the device is
// late: freeing memory waits for what runs in some drivers.
func (b *Buffer) Close() error {
	if b.closed || b.d.closed {
		return nil
	}
	if b.d.late() {
		return b.d.Health()
	}
	if b.users > 0 {
		return fmt.Errorf("vulkan: close: %d programs use the buffer", b.users)
	}
	b.free()
	return nil
}

func (b *Buffer) free() {
	C.gv_buffer_destroy(b.d.c, &b.c)
	delete(b.d.buffers, b)
	b.d.allocations--
	b.mapped, b.closed = nil, true
}
