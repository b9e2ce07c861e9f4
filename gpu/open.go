package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/device/watch"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/probe"
)

// patience is how long opening a device may take.
type patience struct {
	open  time.Duration // at first, and a renderer on the processor at any time
	again time.Duration // after it was lost, when a request waits
}

// shared is a backend that models share, or will when it is open.
type shared struct {
	users int           // who asked for it, under the machine's lock
	ready chan struct{} // closed when what follows is set
	b     ops.Backend
	err   error
}

// share gives the backend that is open under a key, or opens it; it stays open until the
// machine is closed. Who asks for the same key meanwhile waits for it, nobody else does.
func (m *Machine) share(key string, open func() (ops.Backend, error)) (ops.Backend, error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, fmt.Errorf("gpu: %w", ops.ErrClosed)
	}
	if s := m.live[key]; s != nil {
		s.users++
		m.mu.Unlock()
		<-s.ready
		return s.b, s.err
	}
	s := &shared{users: 1, ready: make(chan struct{}), err: fmt.Errorf("gpu: %w: %s was not opened", ErrBackend, key)}
	if m.live == nil {
		m.live = map[string]*shared{}
	}
	m.live[key] = s
	m.mu.Unlock()

	defer close(s.ready)
	b, err := open()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		if m.live[key] == s {
			delete(m.live, key)
		}
	case m.closed:
		go closeSoon(b)
		b, err = nil, fmt.Errorf("gpu: %w", ops.ErrClosed)
	default:
		m.opened = append(m.opened, s)
	}
	s.b, s.err = b, err
	return b, err
}

// forget makes share open a key anew, where b is what is open under it; nil: whatever is.
func (m *Machine) forget(key string, b ops.Backend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.live[key]
	if s == nil {
		return
	}
	select {
	case <-s.ready:
		if b == nil || s.b == b {
			delete(m.live, key)
		}
	default: // it is being opened anew already
	}
}

// Release gives back a device that was opened and is not used after all: it is closed where
// nobody else uses it. The models on o must have been closed before. It does nothing for the
// processor, which is what others go on with.
func (o *Opened) Release() error {
	if o.device == nil {
		return nil
	}
	return o.m.release(deviceKey(*o.device), o.alone)
}

func (m *Machine) release(key string, b ops.Backend) error {
	m.mu.Lock()
	at := slices.IndexFunc(m.opened, func(s *shared) bool { return s.b == b })
	last := false
	if at >= 0 {
		s := m.opened[at]
		s.users--
		if last = s.users == 0; last {
			m.opened = slices.Delete(m.opened, at, at+1)
			if m.live[key] == s {
				delete(m.live, key)
			}
		}
	}
	m.mu.Unlock()
	if !last {
		return nil
	}
	return closeSoon(b)
}

// Failed notes that the device of o failed outside a request, such as when it was measured:
// one that was lost or hangs is quarantined, as Recover does.
func (o *Opened) Failed(failure error) {
	if o.device != nil && errors.Is(failure, ops.ErrDeviceLost) {
		o.m.forget(deviceKey(*o.device), nil)
		o.m.book.Lose(o.device.ID, o.device.API, failure.Error())
	}
}

func deviceKey(d probe.Device) string { return string(d.API) + " " + d.ID }

// open opens a device. A driver that has not done so in time is left alone with it.
func (m *Machine) open(ctx context.Context, d probe.Device) (ops.Backend, error) {
	at := slices.IndexFunc(m.drivers, func(r probe.Driver) bool { return r.Name == d.Driven })
	if at < 0 {
		return nil, fmt.Errorf("gpu: %w: there is no driver %q", ErrBackend, d.Driven)
	}
	type opened struct {
		dev device.Device
		err error
	}
	done := make(chan opened, 1)
	go func() {
		dev, err := m.drivers[at].Open(d.ID)
		done <- opened{dev, err}
	}()
	var o opened
	select {
	case o = <-done:
	case <-ctx.Done():
		go func() {
			if late := <-done; late.err == nil {
				_ = late.dev.Close()
			}
		}()
		o.err = fmt.Errorf("the driver has not come back: %w: %w", ops.ErrDeviceLost, device.ErrTimeout)
	}
	if o.err != nil {
		return nil, fmt.Errorf("gpu: %w: open %s: %w", ErrBackend, d.Name, o.err)
	}
	if m.o.Wrap != nil {
		o.dev = m.o.Wrap(o.dev)
	}
	use := probe.Use{Inexact: !d.Exact(), Variants: d.Variants(m.o.Variants)}
	return m.drivers[at].Backend(watch.New(o.dev, watch.Limits{}), use), nil
}

// openFirst opens a device for the first model that asks for it.
func (m *Machine) openFirst(d probe.Device) (ops.Backend, error) {
	ctx, cancel := context.WithTimeout(context.Background(), m.patience.open)
	defer cancel()
	return m.open(ctx, d)
}

// openAgain opens a device that was lost while a request waits: in a child process first,
// for a driver that has lost its device may crash, and here when that went well.
func (m *Machine) openAgain(d probe.Device) (ops.Backend, error) {
	within := m.patience.again
	if d.Software {
		within = m.patience.open
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := m.book.Opens(ctx, d); err != nil {
		return nil, fmt.Errorf("gpu: %w: open %s again: %w", ErrBackend, d.Name, err)
	}
	return m.open(ctx, d)
}

// Recover gives what a model goes on with after its device has failed; it is
// engine.Config's. A device that was lost is opened anew once, for a driver may have been
// reset by somebody else's fault; one that hangs, or is lost again, or does not open, is
// quarantined. The processor does the rest.
func (o *Opened) Recover(failure error, failures int) (ops.Backend, error) {
	if o.device == nil {
		return nil, nil
	}
	lost := errors.Is(failure, ops.ErrDeviceLost)
	key := deviceKey(*o.device)
	if lost {
		o.m.forget(key, o.alone)
	}
	if lost && !errors.Is(failure, device.ErrTimeout) && failures == 1 {
		b, err := o.m.share(key, func() (ops.Backend, error) { return o.m.openAgain(*o.device) })
		if err == nil {
			return o.divided(b)
		}
		failure = errors.Join(failure, err)
	}
	o.Failed(failure)
	return o.m.processor()
}

// processor is the backend for what fails elsewhere.
func (m *Machine) processor() (ops.Backend, error) {
	return m.share("", func() (ops.Backend, error) {
		b, err := CPU()
		if err != nil {
			m.o.Note("no kernels for this processor (%v): going on slowly", err)
			return ref.New(), nil
		}
		return b, nil
	})
}
