// Package model turns a model file into a plan: one short file per architecture
// family, put together from shared blocks (attention, feed-forward, mixture of
// experts). [New] is the one visible switch.
//
// Everything comes from metadata and tensors, nothing from a model's name; a key
// that real files leave out has the default of the reference implementation
// (llama.cpp, see the comments at each key). Optional tensors (biases, Q/K norms,
// fused QKV) are used where they are present, whatever the architecture. The
// package imports gpu/ops and gpu/gguf and knows no backend.
package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ganglion/gpu/ops"
)

// ErrUnknown is wrapped by the error for an architecture without a builder.
var ErrUnknown = errors.New("unknown architecture")

// builder makes the plan of one architecture family.
type builder func(*graph) error

// families maps GGUF general.architecture to its builder.
var families = map[string]builder{
	"gemma3": gemma3,
	"llama":  llama,
	"qwen2":  qwen2,
	"qwen3":  qwen3,
}

// Architectures lists the known values of general.architecture, sorted.
func Architectures() []string {
	names := make([]string, 0, len(families))
	for n := range families {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Options are the parts of a plan that depend on configuration, not on the file.
type Options struct {
	// Context is the context length the model will run with: LongRoPE chooses its
	// factors by it. 0 means the trained length.
	Context int
	// Adapters are the LoRA files to carry, in the order of the columns of
	// ops.Batch.Scales.
	Adapters []Adapter
}

// New builds and validates the plan of a model file. The plan's weights alias the
// file's mapping.
func New(f Source, o Options) (*ops.Plan, error) {
	arch, ok := f.String("general.architecture")
	if !ok {
		return nil, errors.New(`model: the file has no key "general.architecture"`)
	}
	build, ok := families[arch]
	if !ok {
		return nil, fmt.Errorf("model: %w %q; known are %s", ErrUnknown, arch, strings.Join(Architectures(), ", "))
	}
	p, err := readParams(f, arch, o)
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	g := &graph{Builder: ops.NewBuilder(arch), params: p, src: f}
	if err := build(g); err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	if err := g.failed(); err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	if err := adapt(g.Plan, f, arch, o.Adapters); err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	if err := g.Plan.Validate(); err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	return g.Plan, nil
}
