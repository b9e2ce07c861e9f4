//go:build !cgo || !(linux || windows)

package gl

import (
	"fmt"
	"runtime"

	"ganglion/gpu/device"
)

// absent says why there is no OpenGL in this build. macOS stops at OpenGL 4.1, which has
// no compute shaders.
func absent(place string) error {
	return fmt.Errorf("gl: %s: built for %s without it: %w", place, runtime.GOOS, device.ErrUnsupported)
}

// List says why there is no device.
func List() ([]device.Info, error) { return nil, absent("list") }

// Open says why there is no device.
func Open(o Options) (device.Device, error) {
	if _, err := o.settle(); err != nil {
		return nil, err
	}
	return nil, absent("open")
}
