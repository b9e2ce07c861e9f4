package model

import (
	"slices"

	"ganglion/gpu/gguf"
)

// patch is a model file in which one key has another value: int64, uint64, float64,
// bool, string, a slice of these, or nil for an absent key. Its accessors accept what
// those of gguf.File accept.
type patch struct {
	Source
	key   string
	value any
}

// panicking is a value whose use panics.
type panicking struct{}

func (p patch) Value(key string) (gguf.Value, bool) {
	if key != p.key {
		return p.Source.Value(key)
	}
	switch v := p.value.(type) {
	case nil:
		return gguf.Value{}, false
	case int64:
		return gguf.Value{Type: gguf.Int64}, true
	case uint64:
		return gguf.Value{Type: gguf.Uint64}, true
	case float64:
		return gguf.Value{Type: gguf.Float64}, true
	case bool:
		return gguf.Value{Type: gguf.Bool}, true
	case string:
		return gguf.Value{Type: gguf.String}, true
	case []int64:
		return gguf.Value{Type: gguf.Array, Elem: gguf.Int64, Len: len(v)}, true
	case []float32:
		return gguf.Value{Type: gguf.Array, Elem: gguf.Float32, Len: len(v)}, true
	case []string:
		return gguf.Value{Type: gguf.Array, Elem: gguf.String, Len: len(v)}, true
	}
	panic("no GGUF type")
}

func (p patch) Uint(key string) (uint64, bool) {
	if key != p.key {
		return p.Source.Uint(key)
	}
	switch v := p.value.(type) {
	case uint64:
		return v, true
	case int64:
		return uint64(max(v, 0)), v >= 0
	case panicking:
		panic("used")
	}
	return 0, false
}

func (p patch) Float(key string) (float64, bool) {
	if key != p.key {
		return p.Source.Float(key)
	}
	switch v := p.value.(type) {
	case float64:
		return v, true
	case uint64:
		return float64(v), true
	case int64:
		return float64(v), true
	}
	return 0, false
}

func (p patch) Bool(key string) (bool, bool) {
	if key != p.key {
		return p.Source.Bool(key)
	}
	v, ok := p.value.(bool)
	return v, ok
}

func (p patch) String(key string) (string, bool) {
	if key != p.key {
		return p.Source.String(key)
	}
	v, ok := p.value.(string)
	return v, ok
}

func (p patch) Ints(key string) ([]int64, bool) {
	if key != p.key {
		return p.Source.Ints(key)
	}
	v, ok := p.value.([]int64)
	return v, ok
}

func (p patch) Floats(key string) ([]float32, bool) {
	if key != p.key {
		return p.Source.Floats(key)
	}
	if ns, ok := p.value.([]int64); ok {
		out := make([]float32, len(ns))
		for i, n := range ns {
			out[i] = float32(n)
		}
		return out, true
	}
	v, ok := p.value.([]float32)
	return v, ok
}

func (p patch) Bools(key string) ([]bool, bool) {
	if key != p.key {
		return p.Source.Bools(key)
	}
	v, ok := p.value.([]bool)
	return v, ok
}

func (p patch) Strings(key string) ([]string, bool) {
	if key != p.key {
		return p.Source.Strings(key)
	}
	v, ok := p.value.([]string)
	return v, ok
}

// patchedTensor is a model file in which one tensor is another; without a name it is
// missing.
type patchedTensor struct {
	*gguf.File
	name string
	as   gguf.Tensor
	data []byte
}

func patchTensor(f *gguf.File, name string, change func(*gguf.Tensor, *[]byte)) Source {
	t, _ := f.Tensor(name)
	data, err := f.Data(t)
	if err != nil {
		panic(err)
	}
	t.Dims = slices.Clone(t.Dims)
	p := patchedTensor{File: f, name: name, as: t, data: data}
	change(&p.as, &p.data)
	return p
}

func (p patchedTensor) Tensor(name string) (gguf.Tensor, bool) {
	if name == p.name {
		return p.as, p.as.Name != ""
	}
	return p.File.Tensor(name)
}

func (p patchedTensor) Tensors() []gguf.Tensor {
	all := p.File.Tensors()
	for i := range all {
		if all[i].Name == p.name {
			all[i] = p.as
		}
	}
	return slices.DeleteFunc(all, func(t gguf.Tensor) bool { return t.Name == "" })
}

func (p patchedTensor) Data(t gguf.Tensor) ([]byte, error) {
	if t.Name == p.name {
		return p.data, nil
	}
	return p.File.Data(t)
}
