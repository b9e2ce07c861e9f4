//go:build cgo

package vulkan

// #include "gv.h"
import "C"

import (
	"time"

	"ganglion/gpu/device"
)

const (
	stagingBytes = 8 << 20
	// transferWait is how long one piece of a transfer may take: hundreds of times what
	// the slowest bus needs.
	transferWait = 3 * time.Second
)

// staging carries bytes to and from memory that the host cannot see, in pieces, through
// two buffers in turns: while the device copies one the host fills the other.
type staging struct {
	buffers [C.GV_SLOTS]*Buffer
	running [C.GV_SLOTS]bool
}

// slot waits until a slot is free and gives its buffer.
func (s *staging) slot(d *Device, i int) (*Buffer, error) {
	if err := s.wait(d, i, transferWait); err != nil {
		return nil, err
	}
	if s.buffers[i] == nil {
		b, err := d.newBuffer(stagingBytes, memoryWishes(device.Readback, true), true)
		if err != nil {
			return nil, err
		}
		s.buffers[i] = b
	}
	return s.buffers[i], nil
}

func (s *staging) wait(d *Device, i int, timeout time.Duration) error {
	if !s.running[i] {
		return nil
	}
	if err := d.wait("transfer", C.gv_slot_fence(d.c, C.uint32_t(i)), timeout); err != nil {
		return err
	}
	s.running[i] = false
	return nil
}

// settle waits for all slots.
func (s *staging) settle(d *Device, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for i := range s.running {
		if err := s.wait(d, i, time.Until(deadline)); err != nil {
			return err
		}
	}
	return nil
}

func (s *staging) write(b *Buffer, offset int64, data []byte) error {
	d := b.d
	for i := 0; len(data) > 0; i = (i + 1) % len(s.buffers) {
		from, err := s.slot(d, i)
		if err != nil {
			return err
		}
		n := int64(copy(from.mapped, data))
		if err := from.flush(0, n); err != nil {
			return err
		}
		if err := s.copy(d, i, from, 0, b, offset, n); err != nil {
			return err
		}
		offset, data = offset+n, data[n:]
	}
	return s.settle(d, transferWait)
}

func (s *staging) read(b *Buffer, offset int64, data []byte) error {
	d := b.d
	var waiting [len(s.buffers)][]byte // where the piece in a slot goes
	take := func(i int) error {
		if waiting[i] == nil {
			return nil
		}
		from, err := s.slot(d, i)
		if err != nil {
			return err
		}
		if err := from.invalidate(0, int64(len(waiting[i]))); err != nil {
			return err
		}
		copy(waiting[i], from.mapped)
		waiting[i] = nil
		return nil
	}
	i := 0
	for ; len(data) > 0; i = (i + 1) % len(s.buffers) {
		if err := take(i); err != nil {
			return err
		}
		to, err := s.slot(d, i)
		if err != nil {
			return err
		}
		n := min(int64(len(data)), stagingBytes)
		if err := s.copy(d, i, b, offset, to, 0, n); err != nil {
			return err
		}
		waiting[i], offset, data = data[:n], offset+n, data[n:]
	}
	for range s.buffers { // the oldest first
		if err := take(i); err != nil {
			return err
		}
		i = (i + 1) % len(s.buffers)
	}
	return nil
}

func (s *staging) copy(d *Device, slot int, from *Buffer, fromAt int64, to *Buffer, toAt, n int64) error {
	err := d.check("transfer", C.gv_copy(d.c, C.uint32_t(slot), from.c.handle, C.uint64_t(fromAt), to.c.handle, C.uint64_t(toAt), C.uint64_t(n)))
	s.running[slot] = err == nil
	return err
}

func (s *staging) zero(b *Buffer) error {
	if err := s.wait(b.d, 0, transferWait); err != nil {
		return err
	}
	if err := b.d.check("buffer", C.gv_zero(b.d.c, 0, b.c.handle)); err != nil {
		return err
	}
	s.running[0] = true
	return s.wait(b.d, 0, transferWait)
}
