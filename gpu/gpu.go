// Package gpu opens the backend a person asked for by name, and knows which devices the
// machine has (machine.go). It is the one list of what exists; nothing registers itself.
package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// ErrBackend is wrapped by Open for a name that is not known or not available.
var ErrBackend = errors.New("backend not available")

// Names lists the values that Open takes.
func Names() []string { return []string{"auto", "cpu", "vulkan", "gl", "gles", "ref"} }

// Open returns the backend of a name, on the driver's first device where it is one of a
// GPU. It trusts the driver and measures nothing: "auto" is the processor. The appliance
// opens backends through a Machine.
func Open(name string) (ops.Backend, error) {
	switch name {
	case "auto", "cpu", "":
		return cpu.New(cpu.Options{})
	case "ref":
		return ref.New(), nil
	case "vulkan", "gl", "gles":
		return openFirst(device.API(name))
	}
	return nil, unknown(name)
}

func unknown(name string) error {
	return fmt.Errorf("gpu: %w: %q; known are %s", ErrBackend, name, strings.Join(Names(), ", "))
}

// openFirst opens the first device of an API, hardware before software.
func openFirst(api device.API) (ops.Backend, error) {
	var failures []error
	for _, driver := range Drivers("", "") {
		infos, err := driver.List()
		failures = append(failures, err)
		slices.SortStableFunc(infos, func(a, b device.Info) int { return order(a.Software) - order(b.Software) })
		for _, info := range infos {
			if info.API != api {
				continue
			}
			d, err := driver.Open(info.ID)
			if err == nil {
				return driver.Backend(d, false), nil
			}
			failures = append(failures, err)
		}
	}
	return nil, fmt.Errorf("gpu: %w: %s: no device: %w", ErrBackend, api, errors.Join(failures...))
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}
