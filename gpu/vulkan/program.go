//go:build cgo

package vulkan

// #include "gv.h"
import "C"

import (
	"errors"
	"fmt"
	"time"

	"ganglion/gpu/device"
)

var (
	_ device.Program = (*Program)(nil)
	_ device.Fence   = (*Fence)(nil)
)

// Program is a recorded command buffer with its descriptor sets and its fence.
type Program struct {
	d        *Device
	c        C.gv_program
	commands int
	timed    bool
	buffers  []*Buffer
	kernels  []*Kernel
	fence    Fence
	running  bool  // submitted and not waited for
	fate     error // of the last submission
	closed   bool
}

// Fence is the last submission of a program. Submitting the program again makes it stand
// for that submission.
type Fence struct{ p *Program }

// Commands is the number of dispatches.
func (p *Program) Commands() int { return p.commands }

// Submit starts a program. It is one call into C and allocates nothing.
func (d *Device) Submit(p device.Program) (device.Fence, error) {
	if err := d.usable("submit"); err != nil {
		return nil, err
	}
	q, ok := p.(*Program)
	if !ok || q.d != d {
		return nil, errors.New("vulkan: submit: the program is not of this device")
	}
	if q.closed {
		return nil, fmt.Errorf("vulkan: submit: program: %w", device.ErrClosed)
	}
	if q.running {
		return nil, errors.New("vulkan: submit: the program's last submission has not been waited for")
	}
	if err := d.check("submit", C.gv_submit(d.c, q.c.commands, q.c.fence)); err != nil {
		return nil, err
	}
	q.running, q.fate = true, nil
	return &q.fence, nil
}

// settle waits for the last submission.
func (p *Program) settle(place string, timeout time.Duration) error {
	if !p.running {
		return p.fate
	}
	err := p.d.wait(place, p.c.fence, timeout)
	if !errors.Is(err, device.ErrTimeout) {
		p.running, p.fate = false, err
	}
	return err
}

// Wait sleeps until the submission has ended.
func (f *Fence) Wait(timeout time.Duration) error {
	if f.p.closed || f.p.d.closed {
		return fmt.Errorf("vulkan: wait: %w", device.ErrClosed)
	}
	return f.p.settle("wait", timeout)
}

// Times are how long each command took after those before it. Commands without a barrier
// between them run side by side, and their times add up to that of all.
func (f *Fence) Times() []time.Duration {
	p := f.p
	if !p.timed || p.running || p.fate != nil || p.closed || p.d.closed {
		return nil
	}
	stamps := make([]C.uint64_t, p.commands+1)
	if p.d.check("times", C.gv_times(p.d.c, p.c.queries, C.uint32_t(len(stamps)), &stamps[0])) != nil {
		return nil
	}
	mask := ^C.uint64_t(0) >> (64 - min(p.d.props.timestamp_bits, 64))
	times := make([]time.Duration, p.commands)
	for i := range times {
		times[i] = time.Duration(float64((stamps[i+1]-stamps[i])&mask) * float64(p.d.props.timestamp_period))
	}
	return times
}

// Close waits for the program's last submission and frees it. It fails when that has not
// ended after five seconds, and at once on a device that is late already.
func (p *Program) Close() error {
	if p.closed || p.d.closed {
		return nil
	}
	if p.d.late() {
		return p.d.Health()
	}
	if err := p.settle("close", p.d.closeWait); errors.Is(err, device.ErrTimeout) {
		return err
	}
	p.free()
	return nil
}

func (p *Program) free() {
	C.gv_program_destroy(p.d.c, &p.c)
	for _, b := range p.buffers {
		b.users--
	}
	for _, k := range p.kernels {
		k.users--
	}
	delete(p.d.programs, p)
	p.closed = true
}
