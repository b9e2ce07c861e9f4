package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// graph is a plan under construction together with the file it is built from. Its
// methods collect the first error instead of returning it, so that a family's
// file reads as the forward pass; New asks for the error at the end.
type graph struct {
	*ops.Builder
	*params
	src    *audit
	keys   *reader // keys that only one family knows
	loaded map[string]*ops.Weight
	errs   []error

	il   int      // the layer being built
	last int      // the layer after whose attention only output rows are kept; -1: none
	pass int      // how often the layers have run before, in families that loop over them
	kind normKind // of the norms of this family
	deep int      // layers that add slices of the input embedding (ops.Deepstack)

	unbiased []string // matrices whose biases the family leaves out even where a file has them
}

// fail notes a fault; what every layer would report again is noted once.
func (g *graph) fail(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, have := range g.errs {
		if have.Error() == err.Error() {
			return
		}
	}
	if len(g.errs) < 8 {
		g.errs = append(g.errs, err)
	}
}

func (g *graph) failed() error { return errors.Join(append(g.errs, g.keys.err)...) }

// weight reads a tensor by its full name; nil when the file does not have it. The
// shape is cols, rows and for a stack of matrices experts; a size of 0 takes
// what the file has.
func (g *graph) weight(name string, cols, rows, experts int) *ops.Weight {
	if w := g.loaded[name]; w != nil {
		return w
	}
	w := g.read(name, cols, rows, experts)
	if w == nil {
		return nil
	}
	g.loaded[name] = w
	return g.Builder.Weight(w)
}

// read is weight without making the tensor one of the plan's weights.
func (g *graph) read(name string, cols, rows, experts int) *ops.Weight {
	t, ok := g.src.Tensor(name)
	if !ok {
		return nil
	}
	dims := [3]int{1, 1, 1}
	if len(t.Dims) > 3 {
		g.fail("tensor %q has %d dimensions", name, len(t.Dims))
		return nil
	}
	copy(dims[:], t.Dims)
	for i, want := range [3]int{cols, rows, experts} {
		if want > 0 && dims[i] != want {
			g.fail("tensor %q is %v, want %v", name, t.Dims, [3]int{cols, rows, experts})
			return nil
		}
	}
	if !t.Type.Dequantizable() {
		g.fail("tensor %q has type %v, which holds no weights", name, t.Type)
		return nil
	}
	data, err := g.src.Data(t)
	if err != nil {
		g.fail("tensor %q: %w", name, err)
		return nil
	}
	return &ops.Weight{Name: name, Type: t.Type, Cols: dims[0], Rows: dims[1], Experts: dims[2], Data: data}
}

// matrix reads a required [rows, cols] matrix.
func (g *graph) matrix(name string, cols, rows int) *ops.Weight {
	return g.required(name, g.weight(name, cols, rows, 1), cols, rows)
}

// vector reads a required vector of float32 (norm weights).
func (g *graph) vector(name string, n int) *ops.Weight {
	return g.required(name, g.weight(name, n, 1, 1), n, 1)
}

// optional reads a vector that may be absent.
func (g *graph) optional(name string, n int) *ops.Weight { return g.weight(name, n, 1, 1) }

// required stands a placeholder in for a missing tensor, so that building can go
// on and every missing tensor is reported at once.
func (g *graph) required(name string, w *ops.Weight, cols, rows int) *ops.Weight {
	if w != nil {
		return w
	}
	g.fail("tensor %q is missing or unusable", name)
	return &ops.Weight{Name: name, Type: tensor.F32, Cols: max(cols, 1), Rows: max(rows, 1), Experts: 1}
}

// blk is the name of a tensor of the current layer: blk("attn_q.weight").
func (g *graph) blk(name string) string { return fmt.Sprintf("blk.%d.%s", g.il, name) }

// key is the full name of a metadata key of the architecture.
func (g *graph) key(name string) string { return g.arch + "." + name }

// has tells whether the current layer has a tensor.
func (g *graph) has(name string) bool {
	_, ok := g.src.Tensor(g.blk(name))
	return ok
}

// bias is the name of the bias that belongs to a weight.
func bias(name string) string { return strings.TrimSuffix(name, ".weight") + ".bias" }

// matrixOf is matrix i of a stack as a weight of its own; it shares the stack's bytes.
func (g *graph) matrixOf(stack *ops.Weight, i int) *ops.Weight {
	n := len(stack.Data) / stack.Experts
	return g.Builder.Weight(&ops.Weight{Name: fmt.Sprintf("%s[%d]", stack.Name, i), Type: stack.Type,
		Cols: stack.Cols, Rows: stack.Rows, Experts: 1, Data: stack.Data[i*n : (i+1)*n]})
}

// linear multiplies by a required matrix of the layer, with its bias if present. Files
// of 4-bit floats may have a factor for the whole matrix, which comes before the bias.
func (g *graph) linear(name string, in ops.View, rows int) ops.View {
	full := g.blk(name + ".weight")
	return g.apply(name, g.matrix(full, in.Width, rows), g.biasOf(full, rows), in)
}

// apply multiplies by a matrix of the file. Its own scale, which NVFP4 files have, comes
// before the bias.
func (g *graph) apply(name string, w, bias *ops.Weight, in ops.View) ops.View {
	scale := g.optional(strings.TrimSuffix(w.Name, ".weight")+".scale", 1)
	if scale == nil {
		return g.MatMul(name, w, bias, in)
	}
	out := g.MatMul(name, w, nil, in)
	g.Add(&ops.AddVec{W: scale, Mul: true, In: out, Out: out})
	if bias != nil {
		g.Add(&ops.AddVec{W: bias, In: out, Out: out})
	}
	return out
}

// biasOf reads the bias of a weight where the file has one and the family uses it.
func (g *graph) biasOf(weight string, n int) *ops.Weight {
	for _, name := range g.unbiased {
		if weight == name+".weight" || strings.HasSuffix(weight, "."+name+".weight") {
			g.src.read[bias(weight)] = false // the reference loads it and does not use it
			return nil
		}
	}
	return g.optional(bias(weight), n)
}

// floats reads a float32 tensor that the host works with.
func (g *graph) floats(name string, t gguf.Tensor) []float32 {
	data, err := g.src.Data(t)
	if err != nil {
		g.fail("tensor %q: %w", name, err)
		return nil
	}
	out := make([]float32, len(data)/4)
	if err := tensor.Dequantize(tensor.F32, out, data); err != nil {
		g.fail("tensor %q: %w", name, err)
		return nil
	}
	return out
}

// derived is a vector the host has computed from a tensor of the file.
func (g *graph) derived(name string, values []float32) *ops.Weight {
	if w := g.loaded[name]; w != nil {
		return w
	}
	data := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
	}
	g.loaded[name] = &ops.Weight{Name: name, Type: tensor.F32, Cols: len(values), Rows: 1, Experts: 1, Data: data}
	return g.Builder.Weight(g.loaded[name])
}

// reciprocal is 1/w of a vector of the file.
func (g *graph) reciprocal(name string, n int) *ops.Weight {
	t, ok := g.src.Tensor(name)
	if !ok || t.Type != tensor.F32 || t.Cols() != n || t.Rows() != 1 {
		g.fail("tensor %q is missing or not F32 [%d]", name, n)
		return &ops.Weight{Name: name, Cols: n, Rows: 1}
	}
	values := g.floats(name, t)
	for i, v := range values {
		values[i] = 1 / v
	}
	return g.derived(name+" (reciprocal)", values)
}

// perHead repeats a vector's value of each head over the head's columns.
func (g *graph) perHead(w *ops.Weight, head int) *ops.Weight {
	if w.Type != tensor.F32 {
		g.fail("tensor %q is %v, want F32", w.Name, w.Type)
		return w
	}
	values := make([]float32, 0, head*w.Cols*w.Rows)
	for i := range w.Cols * w.Rows {
		v := math.Float32frombits(binary.LittleEndian.Uint32(w.Data[4*i:]))
		values = append(values, slices.Repeat([]float32{v}, head)...)
	}
	return g.derived(w.Name+" (by column)", values)
}
