//go:build cgo

package vulkan

// #include "gv.h"
import "C"

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ganglion/gpu/device"
)

var _ device.Device = (*Device)(nil)

const (
	// closeWait is how long Close waits for what still runs: as long as the slowest
	// driver's watchdog (panthor, 5 s), so what has not ended by then never will.
	closeWait = 5 * time.Second
	// lateWait is how long closing the device waits once something has not ended in the
	// time it was given.
	lateWait = time.Second
)

// Device is an opened GPU with one queue.
type Device struct {
	in    *instance
	c     *C.gv_device
	props C.gv_properties

	info   device.Info
	limits device.Limits
	caps   device.Caps

	buffers     map[*Buffer]struct{}
	kernels     map[*Kernel]struct{}
	programs    map[*Program]struct{}
	layouts     map[layoutKey]C.gv_layout
	allocations int
	staging     staging
	cache       pipelineCache

	closeWait time.Duration
	// fate is why the device is of no use any more. A timeout is taken back when the fence
	// passes after all.
	fate   atomic.Pointer[error]
	closed bool
}

// Open opens a device. The error wraps device.ErrUnsupported where there is no such
// device, no Vulkan, or no validation layer when one is asked for.
func Open(o Options) (device.Device, error) {
	in, err := newInstance(o)
	if err != nil {
		return nil, err
	}
	d, err := open(in, o)
	if err != nil {
		in.close()
		return nil, err
	}
	return d, nil
}

func open(in *instance, o Options) (*Device, error) {
	all, err := in.devices()
	if err != nil {
		return nil, err
	}
	p, err := choose(all, o)
	if err != nil {
		return nil, err
	}
	d := &Device{
		in: in, props: p.props, info: p.info, limits: limits(&p.props), caps: caps(&p.props, o),
		buffers: map[*Buffer]struct{}{}, kernels: map[*Kernel]struct{}{}, programs: map[*Program]struct{}{},
		layouts: map[layoutKey]C.gv_layout{}, closeWait: closeWait,
	}
	if err := failure("open "+p.info.Name, C.gv_device_create(in.c, p.index, &d.props, &d.c)); err != nil {
		return nil, err
	}
	d.cache = newPipelineCache(&d.props, o)
	if err := d.cache.open(d); err != nil {
		C.gv_device_destroy(d.c)
		return nil, err
	}
	return d, nil
}

func choose(all []physical, o Options) (*physical, error) {
	if o.ID == "" {
		if o.Index < 0 || o.Index >= len(all) {
			return nil, fmt.Errorf("vulkan: open: device %d of %d: %w", o.Index, len(all), device.ErrUnsupported)
		}
		return &all[o.Index], nil
	}
	for i := range all {
		if all[i].info.ID == o.ID {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("vulkan: open: no device %q: %w", o.ID, device.ErrUnsupported)
}

// Info describes the device.
func (d *Device) Info() device.Info { return d.info }

// Limits are the driver's.
func (d *Device) Limits() device.Limits { return d.limits }

// Caps are the abilities that were turned on.
func (d *Device) Caps() device.Caps { return d.caps }

// Messages takes what the validation layer has said since the last call, the oldest
// first. It may be called from any goroutine and after Close, which has the last word on
// what was left open.
func (d *Device) Messages() []string { return d.in.take() }

// Health is nil, or why the device is lost.
func (d *Device) Health() error {
	if err := d.fate.Load(); err != nil {
		return *err
	}
	return nil
}

// usable says why the device takes no more work: one that has not ended something in time
// is asked for nothing until that has ended after all.
func (d *Device) usable(place string) error {
	if d.closed {
		return fmt.Errorf("vulkan: %s: %w", place, device.ErrClosed)
	}
	return d.Health()
}

// check is failure, and remembers the loss of the device.
func (d *Device) check(place string, s status) error {
	err := failure(place, s)
	if err != nil && errors.Is(err, device.ErrLost) {
		first := err // a variable of its own, for err would always be allocated
		d.fate.Store(&first)
	}
	return err
}

// late tells whether something has not ended in time and the device is not lost for that.
func (d *Device) late() bool {
	err := d.fate.Load()
	return err != nil && errors.Is(*err, device.ErrTimeout)
}

// wait sleeps until a fence is signalled. The driver is asked in slices, so that one
// that takes long waits amiss is left after one of them. A fence that is late makes the
// device late for all who use it, until one passes.
func (d *Device) wait(place string, f C.VkFence, timeout time.Duration) error {
	const slice = 200 * time.Millisecond
	timeout = min(timeout, 1000*time.Hour) // the clock ends
	deadline := time.Now().Add(timeout)
	for {
		left := max(time.Until(deadline), 0)
		s := C.gv_wait(d.c, f, C.uint64_t(min(left, slice)))
		if s.result != C.VK_TIMEOUT {
			err := d.check(place, s)
			if err == nil && d.late() {
				d.fate.Store(nil) // late, but alive
			}
			return err
		}
		if left <= slice && time.Until(deadline) <= 0 {
			err := fmt.Errorf("vulkan: %s: after %v: %w", place, timeout, device.ErrTimeout)
			d.fate.CompareAndSwap(nil, &err)
			return err
		}
	}
}

// Close waits for what runs and frees everything. When something has not ended after five
// seconds, or was late before and has not ended after one more, freeing what it uses would
// not be safe: the device is left as it is until the process ends, and the error wraps
// device.ErrTimeout.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	if err := d.drain(); err != nil {
		return err
	}
	d.cache.save(d)
	for p := range d.programs {
		p.free()
	}
	for k := range d.kernels {
		k.free()
	}
	for b := range d.buffers {
		b.free()
	}
	for _, l := range d.layouts {
		C.gv_layout_destroy(d.c, &l)
	}
	d.cache.close(d)
	C.gv_device_destroy(d.c)
	d.in.close()
	return nil
}

// drain waits for all that was submitted. A lost device runs nothing any more.
func (d *Device) drain() error {
	wait := d.closeWait
	if d.late() {
		wait = min(wait, lateWait)
	}
	deadline := time.Now().Add(wait)
	for p := range d.programs {
		if err := p.settle("close", time.Until(deadline)); errors.Is(err, device.ErrTimeout) {
			return err
		}
	}
	if err := d.staging.settle(d, time.Until(deadline)); errors.Is(err, device.ErrTimeout) {
		return err
	}
	return nil
}
