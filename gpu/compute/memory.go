package compute

import (
	"fmt"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// memory is a buffer of the device that may not be allocated yet, or be replaced by a
// larger one: dispatches refer to it before and stay right afterwards.
type memory struct {
	name string
	use  device.Usage
	need int64 // bytes that are asked for
	size int64 // bytes that are allocated
	buf  device.Buffer
}

// grow allocates what is needed, at least a word, and reports whether the buffer is
// another one than before; what it held is lost. Programs that use the buffer must be
// closed before.
func (m *memory) grow(d device.Device) (changed bool, err error) {
	need := (max(m.need, 4) + 3) &^ 3
	if m.size >= need {
		return false, nil
	}
	if err := m.free(); err != nil {
		return true, err
	}
	b, err := d.NewBuffer(need, m.use)
	if err != nil {
		return true, fmt.Errorf("%s: %d bytes: %w", m.name, need, err)
	}
	m.buf, m.size = b, need
	return true, nil
}

// enough tells whether grow would do nothing.
func (m *memory) enough() bool { return m.buf != nil && m.size >= m.need }

func (m *memory) free() error {
	if m.buf == nil {
		return nil
	}
	err := m.buf.Close()
	m.buf, m.size = nil, 0
	return err
}

// region is a part of a memory: what one binding of a dispatch sees. Size 0 is all
// that the memory has.
type region struct {
	mem          *memory
	offset, size int64
}

func (r region) bytes() int64 {
	if r.size == 0 {
		return max(r.mem.need, r.mem.size) - r.offset
	}
	return r.size
}

// touch is what a dispatch reads or writes: a range of bytes of a memory and, where
// that is a view of an activation buffer, its columns. It decides about barriers.
type touch struct {
	mem      *memory
	from, to int64
	view     ops.View // Width 0: not a view, all bytes of the range
}

// overlaps tells whether two touches have a byte in common. Views of one buffer are
// compared by columns; buffers that share memory after one another overlap as wholes.
func (t touch) overlaps(o touch) bool {
	if t.mem != o.mem || t.from >= o.to || o.from >= t.to {
		return false
	}
	if t.view.Width > 0 && o.view.Width > 0 && t.view.Buf == o.view.Buf {
		return t.view.Off < o.view.Off+o.view.Width && o.view.Off < t.view.Off+t.view.Width
	}
	return true
}

func anyOverlap(a, b []touch) bool {
	for _, x := range a {
		for _, y := range b {
			if x.overlaps(y) {
				return true
			}
		}
	}
	return false
}
