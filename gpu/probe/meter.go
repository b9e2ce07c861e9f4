package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ganglion/gpu/device"
)

// KernelTime is what a kernel took over some submissions.
type KernelTime struct {
	Kernel string  `json:"kernel"`
	Calls  int     `json:"calls"`
	MS     float64 `json:"ms"`
	// Weights are the bytes of packed matrices that a product was given, 0 of other
	// kernels. Of a stack of experts that is the whole stack.
	Weights int64 `json:"weight_bytes,omitempty"`
}

// Rate is how many gigabytes of weights the kernel took a second, 0 where it has none.
func (k KernelTime) Rate() float64 {
	if k.MS <= 0 {
		return 0
	}
	return float64(k.Weights) / k.MS / 1e6
}

// weightBytes are those of the packed matrix that a command multiplies with.
func weightBytes(c device.Command) int64 {
	s := c.Kernel.Shader()
	if !strings.HasPrefix(s.Name, "matmul_") {
		return 0
	}
	for i, b := range s.Bindings {
		if strings.EqualFold(b.Name, "weights") && i < len(c.Bindings) {
			return c.Bindings[i].Size
		}
	}
	return 0
}

// Meter is a device that adds up what each kernel takes, where the device has a clock.
// It costs a time stamp for each dispatch. Kernels may be called from any goroutine.
type Meter struct {
	device.Device

	mu      sync.Mutex
	kernels map[string]*KernelTime
}

// NewMeter measures a device, which it owns.
func NewMeter(d device.Device) *Meter { return &Meter{Device: d, kernels: map[string]*KernelTime{}} }

// Kernels are the times since the last call, the longest first.
func (m *Meter) Kernels() []KernelTime {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []KernelTime{}
	for _, k := range m.kernels {
		out = append(out, *k)
	}
	m.kernels = map[string]*KernelTime{}
	slices.SortFunc(out, func(a, b KernelTime) int { return cmp.Or(cmp.Compare(b.MS, a.MS), cmp.Compare(a.Kernel, b.Kernel)) })
	return out
}

// metered is a program that knows the kernel of each command.
type metered struct {
	device.Program
	kernels []string
	weights []int64 // by command
}

// NewProgram records a timed program.
func (m *Meter) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	o.Timed = m.Caps().Timer
	p, err := m.Device.NewProgram(commands, o)
	if err != nil {
		return nil, err
	}
	named := &metered{Program: p}
	for _, c := range commands {
		named.kernels, named.weights = append(named.kernels, c.Kernel.Shader().Name), append(named.weights, weightBytes(c))
	}
	return named, nil
}

// Submit starts a program that NewProgram made.
func (m *Meter) Submit(p device.Program) (device.Fence, error) {
	named, ok := p.(*metered)
	if !ok {
		return nil, fmt.Errorf("probe: meter: a program of another device: %w", device.ErrUnsupported)
	}
	f, err := m.Device.Submit(named.Program)
	if err != nil {
		return nil, err
	}
	return &meteredFence{Fence: f, m: m, p: named}, nil
}

type meteredFence struct {
	device.Fence
	m     *Meter
	p     *metered
	taken bool
}

// Wait adds the times up when the submission has ended.
func (f *meteredFence) Wait(timeout time.Duration) error {
	if err := f.Fence.Wait(timeout); err != nil || f.taken {
		return err
	}
	f.taken = true
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	for i, t := range f.Times() {
		if i >= len(f.p.kernels) {
			break
		}
		k := f.m.kernels[f.p.kernels[i]]
		if k == nil {
			k = &KernelTime{Kernel: f.p.kernels[i]}
			f.m.kernels[k.Kernel] = k
		}
		k.Calls++
		k.Weights += f.p.weights[i]
		k.MS += t.Seconds() * 1000
	}
	return nil
}
