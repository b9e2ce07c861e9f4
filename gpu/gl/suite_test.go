//go:build cgo && (linux || windows)

package gl

import (
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
)

// The suite of all drivers, in every language.
func TestDevice(t *testing.T) {
	eachDialect(t, func(t *testing.T, name device.Dialect) {
		devicetest.Run(t, func(t testing.TB) device.Device { return open(t, Options{Dialect: name}) })
	})
}

// The suite passes in wrappers too: under the tightest profiles, and in the fault
// injector with no fault.
func TestWrapped(t *testing.T) {
	wraps := map[string]func(device.Device) device.Device{
		"faults": func(d device.Device) device.Device { return devicetest.Inject(d) },
	}
	for _, p := range devicetest.Profiles() {
		if p.Name == "v3d42" || p.Name == "webgpu-floor" {
			wraps[p.Name] = func(d device.Device) device.Device { return p.Wrap(d) }
		}
	}
	if len(wraps) != 3 {
		t.Fatalf("%d wrappers", len(wraps))
	}
	for name, wrap := range wraps {
		t.Run(name, func(t *testing.T) {
			devicetest.Run(t, func(t testing.TB) device.Device { return wrap(open(t, Options{})) })
		})
	}
}
