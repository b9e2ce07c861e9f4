//go:build !cgo

package cpu

import (
	"context"
	"fmt"
	"runtime"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

var _ ops.Backend = (*Backend)(nil)

// Backend runs plans on the processor. In a build without cgo it has no kernels of
// its own and hands everything to gpu/ops/ref: right, and slow.
type Backend struct{ *ref.Backend }

// New returns the backend; a build without cgo has plain kernels only.
func New(o Options) (*Backend, error) {
	if o.Kernels != "" && o.Kernels != "plain" {
		return nil, fmt.Errorf("cpu: kernels %q in a build without cgo: %w", o.Kernels, ops.ErrUnsupported)
	}
	return &Backend{ref.New()}, nil
}

// Name is "cpu".
func (b *Backend) Name() string { return "cpu" }

// Caps says that the kernels are plain Go.
func (b *Backend) Caps() ops.Caps {
	return ops.Caps{Device: runtime.GOARCH + " (plain Go, built without cgo)", Exact: true}
}

// Load checks the plan and hands it to the reference executor.
func (b *Backend) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	return b.Backend.Load(ctx, p, o, progress)
}
