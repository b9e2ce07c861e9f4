package ref_test

import (
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
)

func TestConformance(t *testing.T) {
	opstest.Run(t, func(*testing.T) ops.Backend { return ref.New() })
}
