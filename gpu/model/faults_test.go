package model

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/gguf"
)

// altered is a model file with one key replaced, or left out when the value is nil.
type altered struct {
	*gguf.File
	key   string
	value any // uint64, int64, float64, string or nil
}

func (a altered) Value(key string) (gguf.Value, bool) {
	if key != a.key {
		return a.File.Value(key)
	}
	types := map[string]gguf.ValueType{"uint64": gguf.Uint64, "int64": gguf.Int64, "float64": gguf.Float64, "string": gguf.String}
	t, ok := types[fmt.Sprintf("%T", a.value)]
	return gguf.Value{Type: t, Elem: t, Len: 1}, ok
}

func (a altered) Uint(key string) (uint64, bool) {
	if key != a.key {
		return a.File.Uint(key)
	}
	v, ok := a.value.(uint64)
	return v, ok
}

func (a altered) Float(key string) (float64, bool) {
	if key != a.key {
		return a.File.Float(key)
	}
	switch v := a.value.(type) {
	case float64:
		return v, true
	case uint64:
		return float64(v), true
	case int64:
		return float64(v), true
	}
	return 0, false
}

func (a altered) String(key string) (string, bool) {
	if key != a.key {
		return a.File.String(key)
	}
	v, ok := a.value.(string)
	return v, ok
}

func other[T any](a altered, key string, read func(string) (T, bool)) (T, bool) {
	if key != a.key {
		return read(key)
	}
	var none T
	return none, false
}

func (a altered) Bool(key string) (bool, bool)        { return other(a, key, a.File.Bool) }
func (a altered) Ints(key string) ([]int64, bool)     { return other(a, key, a.File.Ints) }
func (a altered) Floats(key string) ([]float32, bool) { return other(a, key, a.File.Floats) }
func (a altered) Bools(key string) ([]bool, bool)     { return other(a, key, a.File.Bools) }
func (a altered) Strings(key string) ([]string, bool) { return other(a, key, a.File.Strings) }

// asked records the keys a builder looks at.
type asked struct {
	*gguf.File
	keys map[string]bool
}

func (a asked) Uint(key string) (uint64, bool) {
	a.keys[key] = true
	return a.File.Uint(key)
}

func (a asked) Float(key string) (float64, bool) {
	a.keys[key] = true
	return a.File.Float(key)
}

// Any value of any key of any model gives a plan or an error that names a key or a
// tensor; values of no meaning always give the error.
func TestEveryKeyWithEveryValue(t *testing.T) {
	values := []struct {
		name    string
		value   any
		refused bool // whatever the key
	}{
		{"missing", nil, false},
		{"0", uint64(0), false},
		{"1", uint64(1), false},
		{"-1", int64(-1), false}, // some numbers may be negative
		{"max", uint64(math.MaxUint64), false},
		{"NaN", math.NaN(), true},
		{"text", "text", true},
	}
	named := regexp.MustCompile(`keys? "|tensor "`)
	set := archtest.Golden(t)
	for _, entry := range set.Entries {
		if families[entry.Arch] == nil {
			continue
		}
		t.Run(entry.Name, func(t *testing.T) {
			t.Parallel()
			f, err := gguf.Open(set.Path(t, entry.Name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			whole := asked{f, map[string]bool{}}
			if _, err := New(whole, Options{}); err != nil {
				t.Fatal(err)
			}
			for key := range whole.keys {
				if !strings.HasPrefix(key, entry.Arch+".") {
					continue
				}
				for _, v := range values {
					_, err := New(altered{f, key, v.value}, Options{})
					switch {
					case err == nil && v.refused:
						t.Errorf("key %q: %s is taken", key, v.name)
					case err != nil && !named.MatchString(err.Error()):
						t.Errorf("key %q: %s: error %q names neither key nor tensor", key, v.name, err)
					}
				}
			}
		})
	}
}

// A tensor that is missing is refused by its name, unless a model can do without.
func TestEveryMissingTensor(t *testing.T) {
	set := archtest.Golden(t)
	for _, entry := range set.Entries {
		if families[entry.Arch] == nil || !strings.HasSuffix(entry.Name, "-dense") {
			continue
		}
		t.Run(entry.Name, func(t *testing.T) {
			f, err := gguf.Open(set.Path(t, entry.Name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, x := range f.Tensors() {
				if !strings.HasSuffix(x.Name, ".weight") || !strings.HasPrefix(x.Name, "blk.0.") || strings.Contains(x.Name, "vis_") {
					continue
				}
				if _, err := New(without{f, x.Name}, Options{}); err == nil {
					if !dispensable[strings.TrimPrefix(x.Name, "blk.0.")] {
						t.Errorf("runs without tensor %q", x.Name)
					}
				} else if !strings.Contains(err.Error(), `tensor "blk.0.`) {
					t.Errorf("without tensor %q: error %q names no tensor of the layer", x.Name, err)
				}
			}
		})
	}
}

// dispensable are tensors of a layer that some family can do without.
var dispensable = map[string]bool{
	"attn_norm_2.weight": true, // Falcon 7B
	"ffn_norm.weight":    true, // StableLM 12B
	"attn_q_norm.weight": true, // StableLM, LLaMA's relatives by presence
	"attn_k_norm.weight": true,
	"attn_sinks.weight":  true,
}

// without is a model file that lacks a tensor.
type without struct {
	*gguf.File
	name string
}

func (w without) Tensor(name string) (gguf.Tensor, bool) {
	if name == w.name {
		return gguf.Tensor{}, false
	}
	return w.File.Tensor(name)
}

func (w without) Tensors() []gguf.Tensor {
	var out []gguf.Tensor
	for _, t := range w.File.Tensors() {
		if t.Name != w.name {
			out = append(out, t)
		}
	}
	return out
}
