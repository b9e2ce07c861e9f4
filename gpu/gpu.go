// Package gpu opens the backend a person asked for by name, and knows which devices the
// machine has: see Machine. It is the one list of what exists; nothing registers itself.
package gpu

import (
	"errors"
	"fmt"
	"strings"

	"ganglion/gpu/cpu"
	"ganglion/gpu/ops"
)

// ErrBackend is wrapped by Machine.Open for a name that is not known or not available.
var ErrBackend = errors.New("backend not available")

// Names lists the backends that a Choice can name.
func Names() []string { return []string{"auto", "cpu", "vulkan", "gl", "gles", "ref"} }

// CPU returns the processor's own backend, which needs no driver.
func CPU() (ops.Backend, error) { return cpu.New(cpu.Options{}) }

// Scan returns the processor's kernels for rows of logits, nil in a build without them.
func Scan() cpu.Scan {
	s, err := cpu.NewScan(cpu.Options{})
	if err != nil {
		return nil
	}
	return s
}

func unknown(name string) error {
	return fmt.Errorf("gpu: %w: %q; known are %s", ErrBackend, name, strings.Join(Names(), ", "))
}
