//go:build cgo && (linux || windows)

package gl

import (
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
)

// BenchmarkDevice is what submissions, commands and reading cost in every language.
func BenchmarkDevice(b *testing.B) {
	for _, name := range []device.Dialect{device.GLSL430, device.GLSL320ES, device.GLSL310ES} {
		b.Run(dialects[name].name, func(b *testing.B) {
			devicetest.Bench(b, func(t testing.TB) device.Device { return open(t, Options{Dialect: name}) })
		})
	}
}
