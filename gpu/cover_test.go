package gpu

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
	"ganglion/gpu/probe"
)

// blank is a device that computes nothing and remembers which kernels it was given.
type blank struct {
	texels  int64 // software renderers read by texel fetches where they can
	kernels map[string]bool
}

func (b *blank) Info() device.Info {
	return device.Info{API: device.Vulkan, Name: "Blank", ID: "blank", Software: b.texels > 0}
}
func (b *blank) Limits() device.Limits {
	return device.Limits{StorageBuffers: 8, BindingBytes: 128 << 20, BufferBytes: 128 << 20, OffsetAlign: 16, Invocations: 256, SharedBytes: 16 << 10,
		ParamBytes: 128, Groups: [3]int64{65535, 65535, 65535}, Texels: b.texels}
}
func (b *blank) Caps() device.Caps { return device.Caps{Precise: true} }
func (b *blank) Health() error     { return nil }
func (b *blank) Close() error      { return nil }

func (b *blank) NewBuffer(size int64, _ device.Usage) (device.Buffer, error) {
	return blankBuffer(make([]byte, size)), nil
}

func (b *blank) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	b.kernels[s.Name] = true
	return blankKernel{s}, nil
}

func (b *blank) NewProgram(c []device.Command, _ device.ProgramOptions) (device.Program, error) {
	return blankProgram(len(c)), nil
}

func (b *blank) Submit(device.Program) (device.Fence, error) { return blankFence{}, nil }

type blankBuffer []byte

func (b blankBuffer) Size() int64                       { return int64(len(b)) }
func (b blankBuffer) Write(at int64, data []byte) error { copy(b[at:], data); return nil }
func (b blankBuffer) Read(at int64, data []byte) error  { copy(data, b[at:]); return nil }
func (b blankBuffer) Close() error                      { return nil }

type blankKernel struct{ s *device.Shader }

func (k blankKernel) Shader() *device.Shader { return k.s }
func (k blankKernel) Close() error           { return nil }

type blankProgram int

func (p blankProgram) Commands() int { return int(p) }
func (p blankProgram) Close() error  { return nil }

type blankFence struct{}

func (blankFence) Wait(time.Duration) error { return nil }
func (blankFence) Times() []time.Duration   { return nil }

// unused asks the questions of a probe on blank devices, in the form with texel fetches where
// there are texels, and returns the kernels of the base set that none of them used.
func unused(t *testing.T, texels []int64, modes ...ops.Numerics) (names []string) {
	t.Helper()
	used := map[string]bool{}
	for _, n := range texels {
		b := compute.New(&blank{texels: n, kernels: used}, compute.Options{Variants: variantNames()})
		probe.Ask(b, modes, func(a probe.Answer) {
			if a.Missing {
				t.Errorf("no kernel for %s in %s mode: %s", a.Name, a.Mode, a.Fault)
			}
		})
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range kernels.All() {
		if used[s.Name] && s.Needs != "" {
			t.Errorf("%s was used without %s", s.Name, s.Needs)
		}
		if !used[s.Name] && s.Needs == "" && !strings.HasPrefix(s.Name, "read") { // a measurement, which checks itself
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// variantNames are the kernels that make use of abilities.
func variantNames() (names []string) {
	for _, s := range kernels.Variants() {
		names = append(names, s.Name)
	}
	return names
}

// The questions of a probe make use of every kernel, in the form with texel fetches and
// in the one without, and of what they lack here nothing is said to be missing.
func TestQuestionsUseEveryKernel(t *testing.T) {
	if left := unused(t, []int64{0, 1 << 27}, ops.Fast, ops.Exact); len(left) > 0 {
		t.Errorf("%d of %d kernels are used by no question: %s", len(left), len(kernels.All()), strings.Join(left, " "))
	}
}

// The partner: without a mode, or without a form, kernels are left out.
func TestFewerQuestionsLeaveKernelsOut(t *testing.T) {
	for name, left := range map[string][]string{
		"fast mode alone":  unused(t, []int64{0, 1 << 27}, ops.Fast),
		"exact mode alone": unused(t, []int64{0, 1 << 27}, ops.Exact),
		"no texels":        unused(t, []int64{0}, ops.Fast, ops.Exact),
		"texels alone":     unused(t, []int64{1 << 27}, ops.Fast, ops.Exact),
	} {
		if len(left) == 0 {
			t.Errorf("%s: no kernel is left out", name)
		}
	}
}

// A device that computes nothing is not said to be right.
func TestBlankDeviceAnswersWrongly(t *testing.T) {
	wrong := 0
	b := compute.New(&blank{kernels: map[string]bool{}}, compute.Options{})
	defer b.Close()
	probe.Ask(b, []ops.Numerics{ops.Fast}, func(a probe.Answer) {
		if a.Fault != "" {
			wrong++
		} else {
			t.Errorf("%s is said to be right on a device that computes nothing", a.Name)
		}
	})
	if wrong == 0 {
		t.Error("nothing was asked")
	}
}
