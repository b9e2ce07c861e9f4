package encoder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// graph is a tower's plan under construction. Its methods collect faults instead of
// returning them, so that a family's file reads as the forward pass.
type graph struct {
	*ops.Builder
	facts
	file   *gguf.File
	prefix string // of tensors: "v." or "a."
	rms    bool   // norms are RMSNorm
	act    ops.Act
	cache  int // that all layers use in turn
	loaded map[string]*ops.Weight
	errs   []error
}

func (g *graph) fail(format string, args ...any) {
	if len(g.errs) < 8 {
		g.errs = append(g.errs, fmt.Errorf(format, args...))
	}
}

// weight reads a tensor as [rows, cols]; nil when the file does not have it. Tensors of
// more dimensions (convolutions) are taken as matrices with rows of all but the last.
func (g *graph) weight(name string, cols, rows int) *ops.Weight {
	if w := g.loaded[name]; w != nil {
		return w
	}
	t, ok := g.file.Tensor(name)
	if !ok {
		return nil
	}
	if t.Cols()*t.Rows() != cols*rows || (t.Dims[0] != cols && t.Type.BlockSize() != 1) || !t.Type.Dequantizable() {
		g.fail("tensor %q is %v of %v, want %d rows of %d", name, t.Dims, t.Type, rows, cols)
		return nil
	}
	data, err := g.file.Data(t)
	if err != nil {
		g.fail("tensor %q: %w", name, err)
		return nil
	}
	w := &ops.Weight{Name: name, Type: t.Type, Cols: cols, Rows: rows, Experts: 1, Data: data}
	g.loaded[name] = w
	return g.Builder.Weight(w)
}

// matrix reads a required tensor.
func (g *graph) matrix(name string, cols, rows int) *ops.Weight {
	if w := g.weight(name, cols, rows); w != nil {
		return w
	}
	g.fail("tensor %q is missing or unusable", name)
	return &ops.Weight{Name: name, Type: tensor.F32, Cols: max(cols, 1), Rows: max(rows, 1), Experts: 1}
}

// has tells whether the file has a tensor.
func (g *graph) has(name string) bool {
	_, ok := g.file.Tensor(name)
	return ok
}

// dims are the dimensions of a tensor, four of them, nil where the file does not have it.
func (g *graph) dims(name string) []int {
	t, ok := g.file.Tensor(name)
	if !ok {
		return nil
	}
	d := []int{1, 1, 1, 1}
	copy(d, t.Dims)
	return d
}

// floats reads n values of a required tensor for the host to work with.
func (g *graph) floats(name string, n int) []float32 {
	out := make([]float32, n)
	t, ok := g.file.Tensor(name)
	if !ok || t.Cols()*t.Rows() != n {
		g.fail("tensor %q is missing or not of %d values", name, n)
		return out
	}
	data, err := g.file.Data(t)
	if err == nil {
		err = tensor.Dequantize(t.Type, out, data)
	}
	if err != nil {
		g.fail("tensor %q: %w", name, err)
	}
	return out
}

// derived is a matrix that the host has computed.
func (g *graph) derived(name string, cols int, values []float32) *ops.Weight {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return g.Builder.Weight(&ops.Weight{Name: name, Type: tensor.F32, Cols: cols, Rows: len(values) / cols, Experts: 1, Data: data})
}

// input is the view that holds the rows of a job.
func (g *graph) input(width int) ops.View {
	g.Plan.Embed, g.Plan.Tokens = width, ops.NoTokens
	return g.Embed(g.derived("input (never looked at)", width, make([]float32, width)), 1)
}

// positions adds the rows of a table of learned positions.
func (g *graph) positions(name string, x ops.View, n int) ops.View {
	out := g.Buffer(name, x.Width)
	g.Add(&ops.Embed{Table: g.matrix(name, x.Width, n), Scale: 1, ByPosition: true, Out: out})
	return g.Sum("positions", x, out)
}

// linear multiplies by NAME.weight with NAME.bias where the file has it, and keeps input
// and output within the limits that some files have for them. Rows of 0 takes what the
// tensor has.
func (g *graph) linear(name string, in ops.View, rows int) ops.View {
	if d := g.dims(name + ".weight"); rows == 0 && d != nil {
		rows = d[1]
	}
	w := g.matrix(name+".weight", in.Width, rows)
	in = g.limited(name+".input", in)
	return g.limited(name+".output", g.MatMul(name, w, g.weight(name+".bias", rows, 1), in))
}

// limited clamps to NAME_min … NAME_max, where the file has them.
func (g *graph) limited(name string, in ops.View) ops.View {
	if !g.has(name+"_min") || !g.has(name+"_max") {
		return in
	}
	low, high := float64(g.floats(name+"_min", 1)[0]), float64(g.floats(name+"_max", 1)[0])
	if !(low < high) {
		g.fail("tensors %q: limits %v and %v", name, low, high)
		return in
	}
	if math.IsInf(high-low, 0) || high-low > 1e30 {
		return in
	}
	middle := float32((low + high) / 2)
	out := g.Buffer(name, in.Width)
	g.Add(&ops.Scale{Factor: 1, Offset: -middle, Clamp: float32((high - low) / 2), In: in, Out: out})
	if middle != 0 {
		g.Add(&ops.Scale{Factor: 1, Offset: middle, In: out, Out: out})
	}
	return out
}

// norm applies NAME.weight and, where there is one, NAME.bias.
func (g *graph) norm(name string, in ops.View) ops.View {
	w := g.matrix(name+".weight", in.Width, 1)
	if g.rms {
		return g.RMSNorm(name, w, g.eps, 0, in)
	}
	return g.layerNorm(name, w, g.weight(name+".bias", in.Width, 1), g.eps, in)
}

func (g *graph) layerNorm(name string, w, bias *ops.Weight, eps float32, in ops.View) ops.View {
	out := g.Buffer(name, in.Width)
	g.Add(&ops.LayerNorm{W: w, Bias: bias, Eps: eps, In: in, Out: out})
	return out
}

// activate applies a function in place.
func (g *graph) activate(a ops.Act, v ops.View) ops.View {
	g.Add(&ops.Unary{Act: a, In: v, Out: v})
	return v
}

// scale multiplies in place.
func (g *graph) scale(by float64, v ops.View) ops.View {
	g.Add(&ops.Scale{Factor: float32(by), In: v, Out: v})
	return v
}

// gather makes rows of units of other rows.
func (g *graph) gather(name string, list, unit, terms, width int, in ops.View) ops.View {
	out := g.Buffer(name, width)
	g.Add(&ops.Gather{List: list, Unit: unit, Terms: terms, Mean: terms > 1, In: in, Out: out})
	return out
}

// merge concatenates n rows to one per output, and the buffers from here on are per output.
func (g *graph) merge(list, n int, in ops.View) ops.View {
	g.PerOut(true)
	return g.gather("merged", list, in.Width, 1, n*in.Width, in)
}

// done ends the plan with the rows that are read back.
func (g *graph) done(out ops.View) (*ops.Plan, error) {
	g.Plan.Vocab, g.Plan.Context, g.Plan.Logits = out.Width, maxRows, out
	if err := errors.Join(g.errs...); err != nil {
		return nil, err
	}
	return g.Plan, g.Plan.Validate()
}

// activation is the function that the file's flags name.
func activation(f *gguf.File) (ops.Act, error) {
	gelu, _ := f.Bool("clip.use_gelu")
	silu, _ := f.Bool("clip.use_silu")
	switch {
	case gelu && silu:
		return 0, errors.New(`keys "clip.use_gelu" and "clip.use_silu" are both true`)
	case gelu:
		return ops.GELU, nil
	case silu:
		return ops.SiLU, nil
	}
	return ops.GELUQuick, nil
}
