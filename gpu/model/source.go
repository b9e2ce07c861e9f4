package model

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ganglion/gpu/gguf"
	"ganglion/gpu/tensor"
)

// Source is what a builder reads of a model file; *gguf.File satisfies it.
type Source interface {
	String(key string) (string, bool)
	Uint(key string) (uint64, bool)
	Float(key string) (float64, bool)
	Bool(key string) (bool, bool)
	Ints(key string) ([]int64, bool)
	Floats(key string) ([]float32, bool)
	Bools(key string) ([]bool, bool)
	Strings(key string) ([]string, bool)
	Value(key string) (gguf.Value, bool)
	Tensor(name string) (gguf.Tensor, bool)
	Tensors() []gguf.Tensor
	Data(t gguf.Tensor) ([]byte, error)
}

// audit is a Source that remembers what was asked of the file, so that New can
// refuse two things no builder looks for: a key whose value is of no use to those
// that asked for it, which would otherwise count as absent and get a default, and a
// tensor that no part of the plan read, which would give a plan that runs and is
// wrong (a bias or a scale the builder does not know).
type audit struct {
	Source
	asked map[string]bool // keys; true once a value was of use
	bad   map[string]error
	read  map[string]bool // tensors; false where the family does not need them
}

func newAudit(f Source) *audit {
	return &audit{Source: f, asked: map[string]bool{}, bad: map[string]error{}, read: map[string]bool{}}
}

func note[T any](a *audit, key string, v T, ok bool) (T, bool) {
	a.asked[key] = a.asked[key] || ok
	return v, ok
}

func (a *audit) String(key string) (string, bool) {
	v, ok := a.Source.String(key)
	return note(a, key, v, ok)
}

func (a *audit) Uint(key string) (uint64, bool) {
	v, ok := a.Source.Uint(key)
	return note(a, key, v, ok)
}

func (a *audit) Bool(key string) (bool, bool) {
	v, ok := a.Source.Bool(key)
	return note(a, key, v, ok)
}

func (a *audit) Ints(key string) ([]int64, bool) {
	v, ok := a.Source.Ints(key)
	return note(a, key, v, ok)
}

func (a *audit) Bools(key string) ([]bool, bool) {
	v, ok := a.Source.Bools(key)
	return note(a, key, v, ok)
}

func (a *audit) Strings(key string) ([]string, bool) {
	v, ok := a.Source.Strings(key)
	return note(a, key, v, ok)
}

func (a *audit) Float(key string) (float64, bool) {
	v, ok := a.Source.Float(key)
	if ok && math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
		a.bad[key] = fmt.Errorf("key %q is %v", key, v)
	}
	return note(a, key, v, ok)
}

func (a *audit) Floats(key string) ([]float32, bool) {
	vs, ok := a.Source.Floats(key)
	for i, v := range vs {
		if v != v || math.IsInf(float64(v), 0) {
			a.bad[key] = fmt.Errorf("key %q: value %d is %v", key, i, v)
		}
	}
	return note(a, key, vs, ok)
}

// Data returns a tensor's bytes, as many as its type and shape ask for.
func (a *audit) Data(t gguf.Tensor) ([]byte, error) {
	a.read[t.Name] = true
	data, err := a.Source.Data(t)
	if err != nil {
		return nil, err
	}
	row, err := tensor.RowBytes(t.Type, t.Cols())
	if err != nil {
		return nil, err
	}
	if len(data) != row*t.Rows() {
		return nil, fmt.Errorf("%d bytes for %v of type %v", len(data), t.Dims, t.Type)
	}
	return data, nil
}

// faults are the keys that are there but of no use to anyone who asked, sorted.
func (a *audit) faults() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(a.asked)) {
		if err := a.bad[key]; err != nil {
			errs = append(errs, err)
		} else if v, there := a.Source.Value(key); there && !a.asked[key] {
			errs = append(errs, fmt.Errorf("key %q has a value of type %s, which is not what it is for", key, kind(v)))
		}
	}
	return errors.Join(errs...)
}

// kind describes a value's type: "u32", "array of 3 f32".
func kind(v gguf.Value) string {
	if v.Type == gguf.Array {
		return fmt.Sprintf("array of %d %v", v.Len, v.Elem)
	}
	if v.Type == gguf.Int8 || v.Type == gguf.Int16 || v.Type == gguf.Int32 || v.Type == gguf.Int64 {
		return fmt.Sprintf("%v (a negative number, it may be)", v.Type)
	}
	return v.Type.String()
}

// leftovers are the tensors of the file that the plan of a model of so many layers
// has not read and that do not belong to something that is not run.
func (a *audit) leftovers(blocks int) error {
	var errs []error
	for _, t := range a.Source.Tensors() {
		if _, read := a.read[t.Name]; !read && !aside(t.Name, blocks) {
			errs = append(errs, fmt.Errorf("tensor %q is in the file, but the architecture has no use for it", t.Name))
		}
		if len(errs) == 8 {
			break
		}
	}
	return errors.Join(errs...)
}

// aside tells whether a tensor may stay unread: towers for pictures and sound, a
// head for classification or embedding, layers after the last (multi-token prediction), the
// frequency factors that were not chosen, and the scale of activations that only
// arithmetic on 4-bit activations needs.
func aside(name string, blocks int) bool {
	for _, prefix := range []string{"v.", "a.", "mm.", "cls.", "dense_2.", "dense_3.", "rope_freqs.", "rope_factors_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	if layer, ok := strings.CutPrefix(name, "blk."); ok {
		n, _, _ := strings.Cut(layer, ".")
		if il, err := strconv.Atoi(n); err == nil && il >= blocks {
			return true
		}
	}
	return strings.HasSuffix(name, ".input_scale")
}

// spare marks tensors of the current layer that the family knows and a text does not
// need (the visual experts of CogVLM).
func (g *graph) spare(names ...string) {
	for _, n := range names {
		g.src.read[g.blk(n)] = false
	}
}
