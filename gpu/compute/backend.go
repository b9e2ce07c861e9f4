package compute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
)

var (
	_ ops.Backend = (*Backend)(nil)
	_ ops.Runtime = (*Runtime)(nil)
	_ ops.Program = (*Program)(nil)
)

// Options changes how a backend uses its device.
type Options struct {
	// Shaders finds a kernel by name, nil when there is none; nil is gpu/kernels.
	Shaders func(name string) *device.Shader
	// Shared leaves the device open when the backend is closed.
	Shared bool
	// Plain leaves every operation a dispatch of its own (see fusion).
	Plain bool
	// Inexact refuses exact mode: the driver was found to break its contract (gpu/probe).
	Inexact bool
	// Deadline is what a run may take beyond its predicted time before the device counts
	// as lost; 0 is four seconds, and two minutes for a renderer on the CPU, which compiles
	// kernels when they first run and shares the processor with everything else.
	Deadline time.Duration
	// Slice is the predicted time of a submission; 0 is 20 ms.
	Slice time.Duration
}

// Backend runs plans on one device. It is safe for concurrent use: what uses the
// device takes turns.
type Backend struct {
	dev      device.Device
	opts     Options
	tempWrap int64 // see tempWrap; another one in tests

	mu      sync.Mutex // of the device and all below
	kernels map[string]device.Kernel
	pace    pace
	last    Stats
	closed  bool
}

// New returns a backend on a device, which it owns unless o.Shared.
func New(d device.Device, o Options) *Backend {
	if o.Shaders == nil {
		o.Shaders = kernels.Get
	}
	if o.Deadline == 0 {
		o.Deadline = 4 * time.Second
		if d.Info().Software {
			o.Deadline = 2 * time.Minute
		}
	}
	if o.Slice == 0 {
		o.Slice = 20 * time.Millisecond
	}
	return &Backend{dev: d, opts: o, tempWrap: tempWrap, kernels: make(map[string]device.Kernel)}
}

// Name is that of the device's API: "vulkan", "gl" or "gles".
func (b *Backend) Name() string { return string(b.dev.Info().API) }

// Caps names the device. Whether a driver keeps to exact mode is for gpu/probe to find;
// OpenGL ES 3.1, which cannot forbid contraction, is trusted until then.
func (b *Backend) Caps() ops.Caps {
	info, limits := b.dev.Info(), b.dev.Limits()
	return ops.Caps{Device: fmt.Sprintf("%s (%s)", info.Name, info.Driver), Exact: !b.opts.Inexact,
		MaxRange: min(limits.BindingBytes, windowBytes)}
}

// Load packs the plan's weights onto the device and allocates caches and states.
func (b *Backend) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("compute: load: %w", ops.ErrClosed)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if o.Numerics == ops.Exact && !b.Caps().Exact {
		return nil, fmt.Errorf("compute: load: exact mode on %s: %w", b.Caps().Device, ops.ErrUnsupported)
	}
	r := newRuntime(b, p, o)
	if err := r.load(ctx, progress); err != nil {
		r.Close()
		return nil, fmt.Errorf("compute: load: %w", translate(err))
	}
	return r, nil
}

// Close frees the kernels and, unless it is shared, the device. It may be called
// twice; runtimes are closed before.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	var errs []error
	for _, k := range b.kernels {
		errs = append(errs, k.Close())
	}
	b.kernels = nil
	if !b.opts.Shared {
		errs = append(errs, b.dev.Close())
	}
	return translate(errors.Join(errs...))
}

// Stats tells what the last run of any program on the device did.
func (b *Backend) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// kernel compiles a shader with its constants, once.
func (b *Backend) kernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	key := fmt.Sprint(s.Name, constants)
	if k, ok := b.kernels[key]; ok {
		return k, nil
	}
	k, err := b.dev.NewKernel(s, slices.Clone(constants))
	if err != nil {
		return nil, fmt.Errorf("kernel %s %v: %w", s.Name, constants, err)
	}
	b.kernels[key] = k
	return k, nil
}
