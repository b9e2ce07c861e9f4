package gpu

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
	"ganglion/gpu/phase"
	"ganglion/gpu/probe"
)

func opened(t *testing.T, m *Machine, backend, device string) *Opened {
	t.Helper()
	o, err := m.Open(context.Background(), Choice{Backend: backend, Device: device})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPhasesJoinTwoBackends(t *testing.T) {
	m := machine(t, nil)
	good, cpu := opened(t, m, "vulkan", "good"), opened(t, m, "cpu", "")
	for _, tt := range []struct {
		prompt, decode *Opened
		name           string
		copies         int
	}{
		{good, cpu, "vulkan/cpu", 2},
		{cpu, good, "cpu/vulkan", 2},
		{good, opened(t, m, "auto", "good"), "vulkan", 1}, // the same device by another name
		{cpu, opened(t, m, "auto", ""), "cpu", 1},
		{opened(t, m, "ref", ""), cpu, "ref/cpu", 2},
	} {
		o := m.Phases(tt.prompt, tt.decode)
		if o.Name() != tt.name || ops.Copies(o) != tt.copies {
			t.Errorf("%s with %s: %s, %d copies, want %s, %d", tt.prompt.Name(), tt.decode.Name(), o.Name(), ops.Copies(o), tt.name, tt.copies)
		}
	}
}

// The side that fails is opened anew once, then left; each engine remembers its own.
func TestRecoveryOfPhases(t *testing.T) {
	lost := func(p phase.Phase) error {
		return fmt.Errorf("engine: %w", &phase.Error{Phase: p, What: "run", Err: ops.ErrDeviceLost})
	}
	full := func(p phase.Phase) error { return &phase.Error{Phase: p, What: "load", Err: ops.ErrOutOfMemory} }
	hung := &phase.Error{Phase: phase.Prompt, What: "run", Err: fmt.Errorf("%w: %w", ops.ErrDeviceLost, device.ErrTimeout)}
	for _, tt := range []struct {
		name, prompt, decode string
		failures             []error
		want                 []string // "" for nothing
	}{
		{"prompts lost twice", "good", "", []error{lost(phase.Prompt), lost(phase.Prompt), ops.ErrOutOfMemory}, []string{"vulkan/cpu", "cpu", ""}},
		{"prompts hang", "good", "", []error{hung}, []string{"cpu"}},
		{"too little memory for prompts", "good", "", []error{full(phase.Prompt)}, []string{"cpu"}},
		{"the processor fails", "good", "", []error{full(phase.Decode), ops.ErrOutOfMemory}, []string{"vulkan", "cpu"}},
		{"tokens lost twice", "soft", "good", []error{lost(phase.Decode), lost(phase.Decode), full(phase.Prompt)}, []string{"vulkan/vulkan", "vulkan/cpu", "cpu"}},
		{"tokens lost beside the processor", "", "good", []error{full(phase.Decode)}, []string{"cpu"}},
		{"a fault of neither", "good", "", []error{errors.New("x")}, []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := machine(t, nil)
			side := func(name string) *Opened {
				if name == "" {
					return opened(t, m, "cpu", "")
				}
				return opened(t, m, "vulkan", name)
			}
			next := m.Phases(side(tt.prompt), side(tt.decode)).Recovery()
			for i, failure := range tt.failures {
				b, err := next(failure, i+1)
				got := ""
				if b != nil {
					got = b.Name()
				}
				if err != nil || got != tt.want[i] {
					t.Errorf("failure %d: %q, error %v, want %q", i+1, got, err, tt.want[i])
				}
			}
		})
	}
}

// One backend alone recovers as ever.
func TestRecoveryOfOne(t *testing.T) {
	m := machine(t, nil)
	b, err := opened(t, m, "vulkan", "good").Recovery()(ops.ErrOutOfMemory, 1)
	if err != nil || b.Name() != "cpu" {
		t.Errorf("%v, %v", b, err)
	}
	if d, _ := m.Known().Find(device.Vulkan, "good"); d.State != probe.Available {
		t.Errorf("the device is %s", d.State)
	}
}
