package devicetest

import (
	"bytes"
	"fmt"
	"math"

	"ganglion/gpu/device"
)

var usages = []device.Usage{device.Weights, device.Scratch, device.Upload, device.Readback}

var bufferChecks = []check{
	{"limits/floor", func(e *env) {
		l, v := e.Limits(), e.Info()
		if l.StorageBuffers < 8 || l.BindingBytes < 1<<27 || l.BufferBytes < 1<<27 || l.Invocations < 256 ||
			l.SharedBytes < 16<<10 || l.ParamBytes < 128 || min(l.Groups[0], l.Groups[1], l.Groups[2]) < 65535 {
			e.Errorf("%+v is less than the portable floor", l)
		}
		if a := l.OffsetAlign; a < 4 || a > 4096 || a&(a-1) != 0 {
			e.Errorf("bindings at multiples of %d bytes", a)
		}
		if v.API == "" || v.Name == "" || v.ID == "" || v.Driver == "" || v.Version == "" {
			e.Errorf("device %+v", v)
		}
		e.must(e.Health())
	}},
	{"buffer/zeros", func(e *env) {
		for _, u := range usages {
			for _, size := range []int64{1, 4, 1000, 3<<20 + 5} {
				// Twice: memory that was used before is cleared again.
				for range 2 {
					b := e.buffer(size, u)
					got := make([]byte, size)
					e.must(b.Read(0, got))
					if n := bytes.Count(got, []byte{0}); n != len(got) {
						e.Errorf("usage %d: %d of %d bytes of a new buffer are not zero", u, len(got)-n, len(got))
					}
					e.must(b.Write(0, bytes.Repeat([]byte{0xA5}, int(size))))
					e.must(b.Close())
				}
			}
		}
	}},
	{"buffer/copies", func(e *env) {
		for _, u := range usages {
			for _, c := range []struct{ size, offset, n int }{
				{64, 0, 64}, {64, 1, 1}, {64, 63, 1}, {64, 3, 21}, {1 << 20, 4097, 70001}, {20<<20 + 7, 5, 20<<20 + 1},
			} {
				e.copies(u, c.size, c.offset, c.n)
			}
		}
	}},
	{"buffer/bounds", func(e *env) {
		for _, u := range usages {
			b := e.buffer(100, u)
			for _, c := range []struct {
				offset int64
				n      int
			}{{0, 101}, {100, 1}, {101, 0}, {-1, 1}, {99, 2}, {math.MaxInt64, 1}, {math.MinInt64, 4}} {
				what := fmt.Sprintf("%d bytes at %d of 100", c.n, c.offset)
				e.wants("write "+what, b.Write(c.offset, make([]byte, c.n)), nil)
				e.wants("read "+what, b.Read(c.offset, make([]byte, c.n)), nil)
			}
			e.must(b.Write(100, nil))
			e.must(b.Read(100, nil))
			e.holds("after refused writes", b, make([]uint32, 25))
		}
	}},
	{"buffer/sizes", func(e *env) {
		for _, size := range []int64{0, -1, math.MinInt64} {
			_, err := e.NewBuffer(size, device.Scratch)
			e.wants(fmt.Sprintf("a buffer of %d bytes", size), err, nil)
		}
		for _, size := range []int64{e.Limits().BufferBytes + 1, math.MaxInt64} {
			_, err := e.NewBuffer(size, device.Weights)
			e.wants(fmt.Sprintf("a buffer of %d bytes", size), err, device.ErrLimit)
		}
	}},
}

// copies writes a part of a buffer and reads all of it.
func (e *env) copies(u device.Usage, size, offset, n int) {
	e.Helper()
	b := e.buffer(int64(size), u)
	want := make([]byte, size)
	for i := range n {
		want[offset+i] = byte(i*7+i>>8) | 1
	}
	e.must(b.Write(int64(offset), want[offset:offset+n]))
	got := make([]byte, size)
	e.must(b.Read(0, got))
	part := make([]byte, n)
	e.must(b.Read(int64(offset), part))
	if !bytes.Equal(got, want) || !bytes.Equal(part, want[offset:offset+n]) {
		e.Errorf("usage %d: %d bytes at %d of %d do not come back as they were written", u, n, offset, size)
	}
	e.must(b.Close())
	e.must(b.Close())
}
