package probe

import (
	"errors"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// clocked is a device whose commands take a millisecond more each.
type clocked struct {
	device.Device
	timer bool
	lost  bool
}

func (c *clocked) Caps() device.Caps { return device.Caps{Timer: c.timer} }

func (c *clocked) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	return clockedProgram{n: len(commands), timed: o.Timed}, nil
}

func (c *clocked) Submit(p device.Program) (device.Fence, error) {
	return clockedFence{p.(clockedProgram), c.lost}, nil
}

type clockedProgram struct {
	device.Program
	n     int
	timed bool
}

type clockedFence struct {
	p    clockedProgram
	lost bool
}

func (f clockedFence) Wait(time.Duration) error {
	if f.lost {
		return device.ErrLost
	}
	return nil
}

func (f clockedFence) Times() (times []time.Duration) {
	for i := range f.p.n {
		if f.p.timed {
			times = append(times, time.Duration(i+1)*time.Millisecond)
		}
	}
	return times
}

type namedKernel struct {
	device.Kernel
	name string
}

func (k namedKernel) Shader() *device.Shader {
	return &device.Shader{Name: k.name, Bindings: []device.Binding{{Name: "Batch"}, {Name: "weights"}}}
}

// A meter adds up what each kernel takes, once for each submission that has ended.
func TestMeterAddsUp(t *testing.T) {
	for _, timer := range []bool{true, false} {
		m := NewMeter(&clocked{timer: timer})
		var commands []device.Command
		for _, name := range []string{"a", "matmul_b", "a"} {
			commands = append(commands, device.Command{Kernel: namedKernel{name: name}, Bindings: []device.Range{{Size: 1}, {Size: 1e6}}})
		}
		p, err := m.NewProgram(commands, device.ProgramOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			f, err := m.Submit(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Wait(time.Second), f.Wait(time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		got := m.Kernels()
		if !timer {
			if len(got) != 0 {
				t.Errorf("times without a clock: %v", got)
			}
			continue
		}
		want := []KernelTime{{Kernel: "a", Calls: 4, MS: 8}, {Kernel: "matmul_b", Calls: 2, MS: 4, Weights: 2e6}}
		if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("times %v, want %v", got, want)
		}
		if rate := got[1].Rate(); rate != 0.5 {
			t.Errorf("2 MB in 4 ms are %v GB/s, want 0.5", rate)
		}
		if again := m.Kernels(); len(again) != 0 {
			t.Errorf("times that were taken already: %v", again)
		}
	}
	m := NewMeter(&clocked{timer: true, lost: true})
	p, _ := m.NewProgram([]device.Command{{Kernel: namedKernel{name: "a"}}}, device.ProgramOptions{})
	f, _ := m.Submit(p)
	if err := f.Wait(time.Second); !errors.Is(err, device.ErrLost) || len(m.Kernels()) != 0 {
		t.Errorf("a lost submission: error %v", err)
	}
	if _, err := m.Submit(clockedProgram{}); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("a program of another device: %v", err)
	}
}
