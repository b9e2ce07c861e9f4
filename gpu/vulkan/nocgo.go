//go:build !cgo

package vulkan

import (
	"fmt"

	"ganglion/gpu/device"
)

// List fails: this build has no cgo, and with it no Vulkan.
func List() ([]device.Info, error) {
	return nil, fmt.Errorf("vulkan: built without cgo: %w", device.ErrUnsupported)
}

// Open fails: this build has no cgo, and with it no Vulkan.
func Open(Options) (device.Device, error) {
	return nil, fmt.Errorf("vulkan: built without cgo: %w", device.ErrUnsupported)
}
