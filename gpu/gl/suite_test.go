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
