package compute

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	// Variants are kernels that fast mode takes in place of those of the base set where the
	// device has what they need; others are not taken. See gpu/kernels/README.md.
	Variants []string
	// Inexact refuses exact mode: the driver was found to break its contract (gpu/probe).
	Inexact bool
	// Deadline is what a submission may take beyond its predicted time before the device
	// counts as hung, and a quarter of it more where it is the first of its kind, for drivers
	// compile kernels then. 0 is two seconds, which leaves three of the five in which a
	// request goes on elsewhere, and two minutes for a renderer on the CPU, which compiles
	// for long and shares the processor with everything else.
	Deadline time.Duration
	// Slice is the predicted time of a submission; 0 is 20 ms.
	Slice time.Duration
	// Dispatch is the predicted time of a dispatch at most, which cannot be cut when it is
	// submitted; 0 is 50 ms, a fifth of the shortest watchdog. What a single row needs of
	// one attention or recurrence may be longer.
	Dispatch time.Duration
}

// deadline is Options.Deadline of a GPU.
const deadline = 2 * time.Second

// Backend runs plans on one device. It is safe for concurrent use: what uses the
// device takes turns.
type Backend struct {
	dev      device.Device
	opts     Options
	tempWrap int64 // see tempWrap; another one in tests
	window   int64 // see windowBytes; a smaller one in tests
	tiles    tiling
	variants map[string]string // by the kernel that they stand for
	now      func() time.Time  // what runs are measured by; another one in tests

	mu      sync.Mutex // of the device and all below
	kernels map[string]device.Kernel
	pace    pace
	last    Stats
	lost    error // why the device is of no use any more, for all runtimes on it
	closed  bool
}

// New returns a backend on a device, which it owns unless o.Shared.
func New(d device.Device, o Options) *Backend {
	if o.Shaders == nil {
		o.Shaders = kernels.Get
	}
	if o.Deadline == 0 {
		o.Deadline = deadline
		if d.Info().Software {
			o.Deadline = 2 * time.Minute
		}
	}
	if o.Slice == 0 {
		o.Slice = 20 * time.Millisecond
	}
	if o.Dispatch == 0 {
		o.Dispatch = 50 * time.Millisecond
	}
	b := &Backend{dev: d, opts: o, tempWrap: tempWrap, window: windowBytes, tiles: tiling{fewRows, tiledGroups}, now: time.Now, kernels: make(map[string]device.Kernel)}
	if d.Info().Software {
		b.tiles.few = math.MaxInt
	}
	b.variants = make(map[string]string)
	for _, name := range o.Variants {
		if s := o.Shaders(name); s != nil && s.Needs != "" && d.Caps().Has(s.Needs) {
			b.variants[s.Base] = name
		}
	}
	return b
}

// Name is that of the device's API: "vulkan", "gl" or "gles".
func (b *Backend) Name() string { return string(b.dev.Info().API) }

// Caps names the device. Whether a driver keeps to exact mode is for gpu/probe to find;
// OpenGL ES 3.1, which cannot forbid contraction, is trusted until then.
func (b *Backend) Caps() ops.Caps {
	info, limits := b.dev.Info(), b.dev.Limits()
	return ops.Caps{Device: fmt.Sprintf("%s (%s)", info.Name, info.Driver), Exact: !b.opts.Inexact,
		MaxRange: min(limits.BindingBytes, b.window)}
}

// Load packs the plan's weights onto the device and allocates caches and states.
func (b *Backend) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	b.mu.Lock()
	closed, lost := b.closed, b.lost
	b.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("compute: load: %w", ops.ErrClosed)
	}
	if lost != nil {
		return nil, fmt.Errorf("compute: load: %w", lost)
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
