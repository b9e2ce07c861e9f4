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
	"arctic":       arctic,
	"bailingmoe":   bailingMoE,
	"bailingmoe2":  bailingMoE2,
	"deepseek":     deepseek,
	"dots1":        dots1,
	"exaone-moe":   exaoneMoE,
	"gemma3":       gemma3,
	"glm4moe":      glm4MoE,
	"gpt-oss":      gptOSS,
	"hunyuan-moe":  hunyuanMoE,
	"hy_v3":        hyV3,
	"llama":        llama,
	"maple":        maple,
	"mellum":       mellum,
	"minimax-m2":   minimaxM2,
	"olmoe":        olmoe,
	"qwen2":        qwen2,
	"qwen2moe":     qwen2moe,
	"qwen3":        qwen3,
	"qwen3moe":     qwen3moe,
	"qwen3vlmoe":   qwen3vlmoe,
	"smallthinker": smallThinker,
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
	g := &graph{Builder: ops.NewBuilder(arch), params: p, src: f, loaded: map[string]*ops.Weight{}, keys: &reader{src: f, arch: arch}, last: p.blocks - 1}
	if err := build(g); err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	if err := g.failed(); err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	if err := g.Plan.Validate(); err != nil {
		return nil, fmt.Errorf("model: %s: %w", arch, err)
	}
	return g.Plan, nil
}
