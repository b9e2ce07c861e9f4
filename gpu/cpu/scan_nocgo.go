//go:build !cgo

package cpu

import (
	"fmt"

	"ganglion/gpu/ops"
)

// NewScan fails: a build without cgo has no kernels, and the sampling package's own Go
// code takes their place.
func NewScan(Options) (Scan, error) {
	return nil, fmt.Errorf("cpu: scan in a build without cgo: %w", ops.ErrUnsupported)
}
