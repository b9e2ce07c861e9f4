package watch

import (
	"fmt"
	"sync/atomic"
	"time"

	"ganglion/gpu/device"
)

var (
	_ device.Device  = (*Device)(nil)
	_ device.Buffer  = (*buffer)(nil)
	_ device.Kernel  = (*kernel)(nil)
	_ device.Program = (*program)(nil)
	_ device.Fence   = (*fence)(nil)
)

// Limits are how long calls may take. 0 is what For gives.
type Limits struct {
	// Call is for what a driver only has to take note of, such as a submission; for a wait
	// beyond its own timeout; and for each 64 MiB of memory that is allocated or copied,
	// one more.
	Call time.Duration
	// Compile is for a kernel, and for a program, with which drivers keep on disk what they
	// have compiled: a slow card takes seconds, and no device is lost for that.
	Compile time.Duration
	// Close is for giving back, which may wait for what runs.
	Close time.Duration
}

// For gives the limits of a device. Calls have less than the time in which a request is to
// go on elsewhere, compilers what the slowest of them need. A renderer on the processor
// shares it with everything else.
func For(i device.Info) Limits {
	if i.Software {
		return Limits{Call: 2 * time.Minute, Compile: 10 * time.Minute, Close: 2 * time.Minute}
	}
	return Limits{Call: 3 * time.Second, Compile: 20 * time.Second, Close: 8 * time.Second}
}

// piece is what may be allocated or copied in the time of a call.
const piece = 64 << 20

// Device is a device whose calls come back.
type Device struct {
	inner  device.Device
	info   device.Info
	limits device.Limits
	caps   device.Caps
	within Limits

	jobs   chan func()           // to the goroutine that calls the driver
	stuck  atomic.Pointer[error] // why nothing enters the driver any more
	room   []byte                // what reads go to first; the driver's where it is stuck
	closed bool
}

// New watches a device, which it owns.
func New(d device.Device, l Limits) *Device {
	info := d.Info()
	usual := For(info)
	for _, x := range []struct {
		to    *time.Duration
		other time.Duration
	}{{&l.Call, usual.Call}, {&l.Compile, usual.Compile}, {&l.Close, usual.Close}} {
		if *x.to == 0 {
			*x.to = x.other
		}
	}
	w := &Device{inner: d, info: info, limits: d.Limits(), caps: d.Caps(), within: l, jobs: make(chan func())}
	go func() {
		for job := range w.jobs {
			job()
		}
	}()
	return w
}

// do has the driver called and waits for it. What f writes may be looked at only when do
// does not give an error of its own.
func (d *Device) do(place string, within time.Duration, f func() error) error {
	if err := d.stuck.Load(); err != nil {
		return *err
	}
	if d.closed {
		return f() // the device's to refuse
	}
	done := make(chan error, 1)
	d.jobs <- func() { done <- f() } // it has nothing else to do
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		err := fmt.Errorf("watch: %s: the driver has not come back after %v: %w", place, within, device.ErrTimeout)
		d.stuck.Store(&err)
		return err
	}
}

// copying is how long a call may take that copies or clears some bytes.
func (d *Device) copying(n int64) time.Duration {
	return d.within.Call * time.Duration(1+max(n, 0)/piece)
}

// Info describes the device.
func (d *Device) Info() device.Info { return d.info }

// Limits are the device's.
func (d *Device) Limits() device.Limits { return d.limits }

// Caps are the device's.
func (d *Device) Caps() device.Caps { return d.caps }

// Health is nil, or why the device is lost; a driver that has not come back is why.
func (d *Device) Health() error {
	if err := d.stuck.Load(); err != nil {
		return *err
	}
	return d.inner.Health()
}

// Submit starts a program.
func (d *Device) Submit(p device.Program) (device.Fence, error) {
	if q, ok := p.(*program); ok && q.d == d {
		p = q.inner
	}
	f := &fence{d: d}
	err := d.do("submit", d.within.Call, func() (err error) {
		f.inner, err = d.inner.Submit(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Close waits for what runs and frees everything. Where the driver has not come back it
// gives up at once, and everything is freed should it ever do.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	err := d.do("close", d.within.Close, d.inner.Close)
	d.closed = true
	go func() {
		if d.stuck.Load() != nil {
			d.jobs <- func() { _ = d.inner.Close() } // it may be closed twice
		}
		close(d.jobs)
	}()
	return err
}

// fence is one submission.
type fence struct {
	d     *Device
	inner device.Fence
}

// Wait sleeps until the submission has ended, and a little longer for a driver that does
// not keep to its timeout.
func (f *fence) Wait(timeout time.Duration) error {
	const most = 1000 * time.Hour // the clock ends
	timeout = min(timeout, most)
	grace := min(f.d.within.Call, time.Second)
	if f.d.info.Software {
		grace = f.d.within.Call
	}
	return f.d.do("wait", timeout+grace, func() error { return f.inner.Wait(timeout) })
}

// Times are the durations of a timed program's commands.
func (f *fence) Times() []time.Duration {
	var times []time.Duration
	if f.d.do("times", f.d.within.Call, func() error {
		times = f.inner.Times()
		return nil
	}) != nil {
		return nil
	}
	return times
}
