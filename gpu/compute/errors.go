package compute

import (
	"errors"
	"fmt"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// kinds pairs what a device says with what a caller of ops can act on.
var kinds = []struct{ device, ops error }{
	{device.ErrLost, ops.ErrDeviceLost},
	{device.ErrTimeout, ops.ErrDeviceLost},
	{device.ErrOutOfMemory, ops.ErrOutOfMemory},
	{device.ErrCompile, ops.ErrUnsupported},
	{device.ErrLimit, ops.ErrUnsupported},
	{device.ErrUnsupported, ops.ErrUnsupported},
	{device.ErrClosed, ops.ErrClosed},
}

// translate wraps an error of a device in the sentinel of ops that stands for it. The
// device's own sentinel stays visible.
func translate(err error) error {
	if err == nil {
		return nil
	}
	for _, k := range kinds {
		if errors.Is(err, k.device) && !errors.Is(err, k.ops) {
			return fmt.Errorf("%w: %w", k.ops, err)
		}
	}
	return err
}
