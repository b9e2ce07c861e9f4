// Package gpu opens the backend a person asked for by name. It is the one list of
// what exists; nothing registers itself.
package gpu

import (
	"errors"
	"fmt"
	"strings"

	"ganglion/gpu/cpu"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// ErrBackend is wrapped by Open for a name that is not known or not available.
var ErrBackend = errors.New("backend not available")

// Names lists the values that Open takes.
func Names() []string { return []string{"auto", "cpu", "gl", "vulkan", "ref"} }

// Open returns the backend of a name. "auto" takes the fastest that is there: the
// CPU until GPU backends are built in.
func Open(name string) (ops.Backend, error) {
	switch name {
	case "auto", "cpu", "":
		return cpu.New(cpu.Options{})
	case "ref":
		return ref.New(), nil
	case "gl", "vulkan":
		return nil, fmt.Errorf("gpu: %w: %s is not built into this version; use cpu", ErrBackend, name)
	}
	return nil, fmt.Errorf("gpu: %w: %q; known are %s", ErrBackend, name, strings.Join(Names(), ", "))
}
