package devicetest

import (
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/device/watch"
)

// Wrappers of devices are devices: the suite passes under each profile, with what the
// profile leaves out of it, in an injector without faults, and watched.
func TestWrapped(t *testing.T) {
	wraps := map[string]func(device.Device) device.Device{
		"faults": func(d device.Device) device.Device { return Inject(d) },
		"watch":  func(d device.Device) device.Device { return watch.New(d, watch.Limits{}) },
	}
	for _, p := range Profiles() {
		wraps[p.Name] = func(d device.Device) device.Device { return p.Wrap(d) }
	}
	for name, wrap := range wraps {
		t.Run(name, func(t *testing.T) {
			runOnOwnClock(t, func() device.Device { return wrap(newFake("")) })
		})
	}
}
