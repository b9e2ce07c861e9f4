package compute

import "ganglion/gpu/ops"

// formatOf picks how a matrix lies on the device.
func formatOf(w *ops.Weight, n ops.Numerics) (format, error) {
	return nil, ops.ErrUnsupported
}
