package devicetest

import (
	"errors"
	"fmt"
	"slices"

	"ganglion/gpu/device"
)

// Keeping is a device that compiles a kernel once for all who use it, for software
// renderers take longer to compile a kernel than to run it. It belongs to one goroutine at
// a time.
type Keeping struct {
	device.Device
	kernels map[string]device.Kernel
	// Used lists the kernels that were asked for, with their constants, in order.
	Used []Use
}

// Use is a kernel as it was asked for.
type Use struct {
	Kernel    string
	Constants []uint32 // of all constants of the shader
}

// Keep keeps the kernels of a device; closing the one closes the other.
func Keep(d device.Device) *Keeping { return &Keeping{Device: d, kernels: map[string]device.Kernel{}} }

// kept is a kernel that outlives who asked for it.
type kept struct{ device.Kernel }

func (kept) Close() error { return nil }

// NewKernel gives the kernel that was compiled for the first who asked.
func (d *Keeping) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	if s == nil {
		return d.Device.NewKernel(s, constants)
	}
	values := s.Values(constants)
	key := fmt.Sprint(s.Name, values)
	if d.kernels[key] == nil {
		k, err := d.Device.NewKernel(s, constants)
		if err != nil {
			return nil, err
		}
		d.kernels[key] = k
	}
	d.Used = append(d.Used, Use{s.Name, values})
	return kept{d.kernels[key]}, nil
}

// NewProgram records commands with kept kernels.
func (d *Keeping) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	commands = slices.Clone(commands)
	for i, c := range commands {
		if k, ok := c.Kernel.(kept); ok {
			commands[i].Kernel = k.Kernel
		}
	}
	return d.Device.NewProgram(commands, o)
}

// Close frees the kernels and closes the device.
func (d *Keeping) Close() error {
	var errs []error
	for _, k := range d.kernels {
		errs = append(errs, k.Close())
	}
	clear(d.kernels)
	return errors.Join(append(errs, d.Device.Close())...)
}

// hardware is a renderer that passes for a GPU.
type hardware struct{ device.Device }

// AsHardware is a device that says it were no software renderer, so that what a GPU gets
// is computed: other shapes of workgroups, no texel fetches.
func AsHardware(d device.Device) device.Device { return hardware{d} }

func (d hardware) Info() device.Info {
	info := d.Device.Info()
	info.Software = false
	return info
}
