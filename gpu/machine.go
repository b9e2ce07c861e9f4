package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/probe"
	"ganglion/gpu/split"
)

// Options says how a Machine looks at its devices.
type Options struct {
	CacheDir string // for results of probes and compiled kernels; "" keeps nothing
	Version  string // of the program: results hold for it and its kernels alone
	// Child makes the command line of a probe: a process that calls Probe with the
	// arguments. nil: GPUs cannot be probed and are not used.
	Child func(ctx context.Context, args ...string) *exec.Cmd
	// Variants says which kernels that make use of a device's abilities are taken.
	Variants probe.Variants
	// Note tells people what happens, such as that devices are tested; nil: nobody.
	Note func(format string, args ...any)
	// Drivers, when not nil, stand in the place of this system's, for tests; what they list
	// counts as there without a look at the system.
	Drivers []probe.Driver
	// Wrap, when not nil, wraps each device that is opened, to measure it.
	Wrap func(device.Device) device.Device
}

// Choice is what somebody wants to compute on.
type Choice struct {
	Backend string // one of Names; "" is "auto"
	Device  string // an ID, or a part of a name; "": any of the backend
	Exact   bool   // exact mode will be asked for
	// Memory is what a model may take of a device in bytes, the rest of it lying on the
	// processor; 0: nine tenths of what a discrete device has, and no bound on others, whose
	// memory is the processor's.
	Memory int64
}

// Machine is the devices of this machine and the backends that were opened on them. It
// is safe for concurrent use.
type Machine struct {
	o       Options
	drivers []probe.Driver
	book    *probe.Book

	patience patience

	mu     sync.Mutex // held for a moment only, never over a driver's call
	opened []*shared
	live   map[string]*shared // those that models can share
	closed bool
}

// NewMachine looks at nothing yet.
func NewMachine(o Options) *Machine {
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	if o.Drivers != nil {
		return newMachine(o, o.Drivers)
	}
	return newMachine(o, Drivers(o.CacheDir))
}

func newMachine(o Options, drivers []probe.Driver) *Machine {
	m := &Machine{o: o, drivers: drivers, patience: patience{open: 30 * time.Second, again: 2 * time.Second}}
	var names []string
	for _, d := range drivers {
		names = append(names, d.Name)
	}
	if o.Child == nil {
		names = nil
	}
	m.book = &probe.Book{
		Prober: &probe.Prober{Command: o.Child}, Drivers: names, Dir: o.CacheDir, Untried: o.Variants == probe.NoVariants,
		Kernels: func() string { return KernelHash() + "/" + o.Version }, Now: time.Now,
	}
	return m
}

// Find looks at all devices, in child processes where nothing is known of them; retest
// tests every one that was tested before again, quarantined ones too.
func (m *Machine) Find(ctx context.Context, retest bool) probe.Report {
	return m.book.Find(ctx, retest)
}

// Known is what was found until now, without looking.
func (m *Machine) Known() probe.Report { return m.book.Known() }

// Opened is a backend and the device that it runs on.
type Opened struct {
	ops.Backend
	m      *Machine
	device *probe.Device // nil: the processor
	alone  ops.Backend   // of the device, without the processor's part
	budget int64         // bytes that a model may take there, 0 = no bound
	sides  [2]*Opened    // by phase.Phase, where each has its own: see Phases
}

// Device is what the backend runs on; ok is false for the processor and for two devices.
func (o *Opened) Device() (d probe.Device, ok bool) {
	if o.device == nil {
		return probe.Device{}, false
	}
	return *o.device, true
}

// Open opens the backend of a choice. "auto" without a device is the processor here: see
// Candidates for what else there is. The backend is closed with the machine.
func (m *Machine) Open(ctx context.Context, c Choice) (*Opened, error) {
	switch c.Backend {
	case "", "auto":
		if c.Device == "" {
			return m.Open(ctx, Choice{Backend: "cpu"})
		}
		return m.openNamed(ctx, c, "")
	case "cpu", "ref":
		if c.Device != "" {
			return nil, fmt.Errorf("gpu: %w: %s has no devices to choose from", ErrBackend, c.Backend)
		}
		open := CPU
		if c.Backend == "ref" {
			open = func() (ops.Backend, error) { return ref.New(), nil }
		}
		return m.openPlain(c, open)
	case "vulkan", "gl", "gles":
		return m.openNamed(ctx, c, device.API(c.Backend))
	}
	return nil, unknown(c.Backend)
}

func (m *Machine) openPlain(c Choice, open func() (ops.Backend, error)) (*Opened, error) {
	b, err := m.share(c.Backend, open)
	if err != nil {
		return nil, err
	}
	return &Opened{Backend: b, m: m}, nil
}

// openNamed opens a device that somebody asked for, be it a software renderer.
func (m *Machine) openNamed(ctx context.Context, c Choice, api device.API) (*Opened, error) {
	report := m.Find(ctx, false)
	d, ok := report.Find(api, c.Device)
	if !ok {
		what := string(api)
		if c.Device != "" {
			what = fmt.Sprintf("%s %q", orElse(what, "device"), c.Device)
		}
		err := fmt.Errorf("gpu: %w: %s: there is no such device on this machine", ErrBackend, what)
		for _, f := range report.Faults {
			err = fmt.Errorf("%w; %s", err, f)
		}
		return nil, err
	}
	if d.State == probe.Untested {
		m.o.Note("testing the kernels on %s", d.Name)
		d = m.book.Ready(ctx, d)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.OpenDevice(d, c)
}

// OpenDevice opens a device that Find has found.
func (m *Machine) OpenDevice(d probe.Device, c Choice) (*Opened, error) {
	switch {
	case d.State != probe.Available:
		return nil, fmt.Errorf("gpu: %w: %s through %s is %s: %s (`ganglion doctor --retest` tests it again)", ErrBackend, d.Name, d.API, d.State, d.Reason)
	case c.Exact && !d.Exact():
		return nil, fmt.Errorf("gpu: %w: exact mode is refused on %s through %s, whose driver breaks its rules: %s", ErrBackend, d.Name, d.API, d.Inexact)
	}
	b, err := m.share(deviceKey(d), func() (ops.Backend, error) { return m.openFirst(d) })
	if err != nil {
		return nil, err
	}
	o := &Opened{m: m, device: &d, alone: b, budget: budgetOf(d, c)}
	o.Backend, err = o.divided(b)
	return o, err
}

// budgetOf is how many bytes a model may take on a device, 0 for no bound. What else runs
// on a discrete device, a desktop most of all, keeps a tenth.
func budgetOf(d probe.Device, c Choice) int64 {
	if c.Memory > 0 || !d.Discrete {
		return c.Memory
	}
	return d.Memory - d.Memory/10
}

// divided is a device's backend with the processor for what does not fit.
func (o *Opened) divided(b ops.Backend) (ops.Backend, error) {
	if o.budget <= 0 {
		return b, nil
	}
	p, err := o.m.processor()
	if err != nil {
		return nil, err
	}
	return split.New(p, b, o.budget), nil
}

// Candidates are the devices that "auto" may choose from beside the processor: hardware
// that passed every test, in exact mode those that keep to it. Where the system shows no
// sign of a GPU nobody is asked.
func (m *Machine) Candidates(ctx context.Context, c Choice) []probe.Device {
	if m.o.Drivers == nil && !hardwareHere("/dev") {
		return nil
	}
	var out []probe.Device
	for _, d := range m.Find(ctx, false).Devices {
		if d.State == probe.Available && !d.Software && (!c.Exact || d.Exact()) {
			out = append(out, d)
		}
	}
	return out
}

// hardwareHere tells whether the system may have a GPU that programs can use. Only on
// Linux does it say no: a GPU has a device file there, in dev.
func hardwareHere(dev string) bool {
	if runtime.GOOS != "linux" {
		return true
	}
	for _, pattern := range []string{"dri/*", "nvidia[0-9]*", "nvhost-gpu", "nvgpu", "kgsl-3d0", "mali*", "pvr*", "dxg"} {
		if found, err := filepath.Glob(filepath.Join(dev, pattern)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// Processor is the processor's own entry for rates.
func Processor(b ops.Backend) probe.Device {
	name := b.Caps().Device
	return probe.Device{Info: device.Info{API: "cpu", Name: name, ID: name, Driver: runtime.Version()}, Driven: "cpu", State: probe.Available}
}

// Rates are the speeds that were kept of a device for a model.
func (m *Machine) Rates(d probe.Device, key string) (r probe.Rates, ok bool) {
	r, ok = m.book.Rates(d, key)
	return r, ok
}

// SetRates keeps speeds.
func (m *Machine) SetRates(d probe.Device, key string, r probe.Rates) { m.book.SetRates(d, key, r) }

// Probe is the child's side of a probe.
func Probe(w io.Writer, cacheDir string, args []string) error {
	return probe.Child(w, Drivers(cacheDir), args)
}

// Close closes all backends; their models must have been closed before. A device that
// hangs is left behind after a moment.
func (m *Machine) Close() error {
	m.mu.Lock()
	m.closed = true
	opened := m.opened
	m.opened = nil
	m.mu.Unlock()
	var errs []error
	for i := len(opened) - 1; i >= 0; i-- {
		errs = append(errs, closeSoon(opened[i].b))
	}
	return errors.Join(errs...)
}

func closeSoon(b ops.Backend) error {
	done := make(chan error, 1)
	go func() { done <- b.Close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(3 * time.Second):
		return fmt.Errorf("gpu: %s (%s) does not close", b.Name(), b.Caps().Device)
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
