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
	devicetest.RunWrapped(t, func(t testing.TB) device.Device { return open(t, Options{}) }, "v3d42", "webgpu-floor")
}
