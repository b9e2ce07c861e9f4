package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/device/watch"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/probe"
)

// gated is a machine whose driver opens its card when it is let.
func gated(t *testing.T) (m *Machine, d probe.Device, let chan struct{}, closed chan string) {
	t.Helper()
	m = machine(t, nil)
	let, closed = make(chan struct{}), make(chan string, 9)
	open := m.drivers[0].Open
	m.drivers[0].Open = func(id string) (device.Device, error) {
		<-let
		dev, err := open(id)
		return closing{dev, closed}, err
	}
	d, ok := m.Find(context.Background(), false).Find(device.Vulkan, "good")
	if !ok {
		t.Fatal("there is no card")
	}
	return m, d, let, closed
}

// closing tells when it is closed.
type closing struct {
	device.Device
	closed chan string
}

func (c closing) Close() error {
	c.closed <- c.Info().ID
	return c.Device.Close()
}

// Opening a device holds up those alone who want that device: they get the same one.
func TestOpeningHoldsNobodyElseUp(t *testing.T) {
	m, d, let, closed := gated(t)
	got := make(chan *Opened, 2)
	for range 2 {
		go func() {
			o, err := m.OpenDevice(d, Choice{})
			if err != nil {
				t.Error(err)
			}
			got <- o
		}()
	}
	others := make(chan error, 1)
	go func() {
		_, err := m.Open(context.Background(), Choice{Backend: "cpu"})
		m.forget(deviceKey(d), nil) // of a model that was lost just now: it does not stop the opening
		others <- err
	}()
	select {
	case err := <-others:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("another backend waits for the device")
	}
	select {
	case <-got:
		t.Error("the device was open before the driver let it be")
	default:
	}
	close(let)
	if a, b := <-got, <-got; a == nil || b == nil || a.alone != b.alone {
		t.Error("two asked for the device and got two")
	}
	if len(closed) != 0 {
		t.Error("a device was closed")
	}
}

// A driver that does not come back from opening is left behind; should it come back, what
// it opened is closed. The partner is TestOpeningHoldsNobodyElseUp, where it is waited for.
func TestOpeningIsLeftBehind(t *testing.T) {
	m, d, let, closed := gated(t)
	m.patience.open = 30 * time.Millisecond
	if _, err := m.OpenDevice(d, Choice{}); !errors.Is(err, device.ErrTimeout) || !errors.Is(err, ErrBackend) {
		t.Errorf("error %v", err)
	}
	close(let)
	if id := <-closed; id != "good" {
		t.Errorf("%s was closed", id)
	}
	m.patience.open = time.Minute
	if _, err := m.OpenDevice(d, Choice{}); err != nil {
		t.Errorf("asked for again: %v", err)
	}
}

// A device that was lost is opened anew in a child first: where that crashes or hangs this
// process does not try, the processor goes on, and the device is quarantined. Where it goes
// well the device goes on (TestRecoverChoosesWhatGoesOn).
func TestDriverThatLostItsDeviceIsTriedInAChild(t *testing.T) {
	for what, again := range map[string]time.Duration{"crash": time.Minute, "hang": 300 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			opened := map[string]int{}
			m := machine(t, opened)
			o, err := m.Open(context.Background(), Choice{Backend: "vulkan", Device: "good"})
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv(openEnv, what)
			m.patience.again = again
			b, err := o.Recover(ops.ErrDeviceLost, 1)
			if err != nil || b == nil || b.Name() != "cpu" {
				t.Fatalf("backend %v, error %v", b, err)
			}
			if d, _ := m.Known().Find(device.Vulkan, "good"); opened["good"] != 1 || d.State != probe.Quarantined {
				t.Errorf("opened %d times, %s: %s", opened["good"], d.State, d.Reason)
			}
		})
	}
}

// A machine that is closed while a device opens does not keep it.
func TestClosedWhileOpening(t *testing.T) {
	m, d, let, _ := gated(t)
	done := make(chan error, 1)
	go func() {
		_, err := m.OpenDevice(d, Choice{})
		done <- err
	}()
	for m.mu.Lock(); m.live[deviceKey(d)] == nil; m.mu.Lock() {
		m.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	m.mu.Unlock()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	close(let)
	if err := <-done; !errors.Is(err, ops.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// A device that was measured and is not used is closed, where no model has it; the processor
// stays. Asked for again it is opened again.
func TestReleasedDevicesAreClosed(t *testing.T) {
	m, d, let, closed := gated(t)
	close(let)
	open := func() *Opened {
		o, err := m.OpenDevice(d, Choice{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	m.drivers[0].Backend = func(dev device.Device, _ probe.Use) ops.Backend { return owner{named{ref.New(), dev.Info()}, dev} }
	first, second := open(), open()
	if err := first.Release(); err != nil || len(closed) != 0 {
		t.Errorf("%d devices were closed that a model has, %v", len(closed), err)
	}
	if err := second.Release(); err != nil || len(closed) != 1 {
		t.Errorf("%d devices were closed that nobody has, %v", len(closed), err)
	}
	if err := second.Release(); err != nil || len(closed) != 1 {
		t.Errorf("released twice: %d devices closed, %v", len(closed), err)
	}
	if third := open(); third.alone == first.alone {
		t.Error("a device that was closed is used")
	}
	processor, err := m.Open(context.Background(), Choice{Backend: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	if err := processor.Release(); err != nil {
		t.Error(err)
	}
	again, err := m.Open(context.Background(), Choice{Backend: "cpu"})
	if err != nil || again.Backend != processor.Backend {
		t.Errorf("the processor was closed: %v", err)
	}
	if err := m.Close(); err != nil || len(closed) != 2 {
		t.Errorf("closing the machine: %d devices closed in all, %v", len(closed), err)
	}
}

// owner closes its device with itself.
type owner struct {
	ops.Backend
	dev device.Device
}

func (o owner) Close() error { return o.dev.Close() }

// A device that hangs while it is measured is quarantined, so that the next start does not
// wait for it before it was tested; other failures are no fault of the device.
func TestDeviceThatHangsWhenMeasured(t *testing.T) {
	for _, tt := range []struct {
		err   error
		state probe.State
	}{
		{fmt.Errorf("load: %w: %w", ops.ErrDeviceLost, device.ErrTimeout), probe.Quarantined},
		{ops.ErrDeviceLost, probe.Quarantined},
		{ops.ErrOutOfMemory, probe.Available},
	} {
		m := machine(t, nil)
		o, err := m.Open(context.Background(), Choice{Backend: "vulkan", Device: "good"})
		if err != nil {
			t.Fatal(err)
		}
		o.Failed(tt.err)
		if d, _ := m.Known().Find(device.Vulkan, "good"); d.State != tt.state || (d.Losses == 1) != (tt.state == probe.Quarantined) {
			t.Errorf("%v: %s (%s), %d losses", tt.err, d.State, d.Reason, d.Losses)
		}
		if err := o.Release(); err != nil {
			t.Error(err)
		}
	}
}

// Every device that a machine opens is watched, one that was lost and is opened anew too.
func TestOpenedDevicesAreWatched(t *testing.T) {
	m, d, let, _ := gated(t)
	close(let)
	watched := 0
	m.drivers[0].Backend = func(dev device.Device, _ probe.Use) ops.Backend {
		if _, ok := dev.(*watch.Device); ok {
			watched++
		}
		return named{ref.New(), dev.Info()}
	}
	o, err := m.OpenDevice(d, Choice{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Recover(ops.ErrDeviceLost, 1); err != nil || watched != 2 {
		t.Errorf("%d of 2 devices are watched, %v", watched, err)
	}
}

// A device is opened with the variants of kernels that are to be taken on it.
func TestVariantsAreOpened(t *testing.T) {
	m, d, let, _ := gated(t)
	close(let)
	d.Trials = []probe.Trial{{Kernels: []probe.Timed{{Kernel: "faster", MS: 1, BaseMS: 2}, {Kernel: "slower", MS: 2, BaseMS: 1}}}}
	for which, want := range map[probe.Variants][]string{"": {"faster"}, probe.AllVariants: {"faster", "slower"}, probe.NoVariants: nil} {
		m.o.Variants = which
		var used probe.Use
		m.drivers[0].Backend = func(dev device.Device, u probe.Use) ops.Backend {
			used = u
			return owner{named{ref.New(), dev.Info()}, dev}
		}
		o, err := m.OpenDevice(d, Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(used.Variants, want) || used.Inexact {
			t.Errorf("%q: %+v, want %q", which, used, want)
		}
		if err := o.Release(); err != nil {
			t.Error(err)
		}
	}
}
