package model

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// graph is a plan under construction together with the file it is built from. Its
// methods collect the first error instead of returning it, so that a family's
// file reads as the forward pass; New asks for the error at the end.
type graph struct {
	*ops.Builder
	*params
	src    Source
	loaded map[string]*ops.Weight
	errs   []error

	il int // the layer being built
}

func (g *graph) fail(format string, args ...any) {
	if len(g.errs) < 8 {
		g.errs = append(g.errs, fmt.Errorf(format, args...))
	}
}

func (g *graph) failed() error { return errors.Join(g.errs...) }

// weight reads a tensor by its full name; nil when the file does not have it. The
// shape is cols, rows and for a stack of matrices experts; a size of 0 takes
// what the file has.
func (g *graph) weight(name string, cols, rows, experts int) *ops.Weight {
	if w := g.loaded[name]; w != nil {
		return w
	}
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
	w := &ops.Weight{Name: name, Type: t.Type, Cols: dims[0], Rows: dims[1], Experts: dims[2], Data: data}
	if g.loaded == nil {
		g.loaded = make(map[string]*ops.Weight)
	}
	g.loaded[name] = w
	return g.Builder.Weight(w)
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

// linear multiplies by a required matrix of the layer, with its bias if present.
func (g *graph) linear(name string, in ops.View, rows int) ops.View {
	full := g.blk(name + ".weight")
	return g.MatMul(name, g.matrix(full, in.Width, rows), g.optional(bias(full), rows), in)
}

// norm is RMSNorm with a required weight of the layer.
func (g *graph) norm(name string, in ops.View) ops.View {
	return g.RMSNorm(name, g.vector(g.blk(name+".weight"), in.Width), g.eps, 0, in)
}

// embed starts the forward pass: token rows × scale. It fixes the vocabulary.
func (g *graph) embed(scale float32) ops.View {
	table := g.required("token_embd.weight", g.weight("token_embd.weight", g.embd, 0, 1), g.embd, 1)
	g.vocab = table.Rows
	g.Plan.Vocab, g.Plan.Embed, g.Plan.Context = table.Rows, g.embd, g.context
	return g.Embed(table, scale)
}

// head ends the forward pass: final norm, output matrix (tied to the embedding
// when the file has none), softcap. x must already be per output.
func (g *graph) head(x ops.View) {
	x = g.RMSNorm("output_norm", g.vector("output_norm.weight", g.embd), g.eps, 0, x)
	w := g.weight("output.weight", g.embd, g.vocab, 1)
	if w == nil {
		w = g.matrix("token_embd.weight", g.embd, g.vocab)
	}
	logits := g.MatMul("logits", w, g.optional("output.bias", g.vocab), x)
	if g.finalSoftcap > 0 {
		g.Add(&ops.Softcap{Cap: float32(g.finalSoftcap), In: logits, Out: logits})
	}
	g.Plan.Logits = logits
}

// ropeTable adds a table with the file's scaling applied to the given base.
func (g *graph) ropeTable(base float64, scaled bool) int {
	t := &ops.RoPETable{NRot: g.ropeDim, Base: base, Scale: 1, Magnitude: g.scaling.attnFactor}
	if scaled {
		t.Scale = 1 / g.scaling.factor
		t.Factors = g.ropeFactors()
		if g.scaling.kind == "yarn" {
			g.yarn(t)
		}
	}
	return g.Table(t)
}

// yarn sets the YaRN part of a table. The magnitude is the reference's: 0.1·ln f+1,
// divided by the same with yarn_log_multiplier where the file has one.
func (g *graph) yarn(t *ops.RoPETable) {
	s := g.scaling
	t.YaRN, t.OriginalContext, t.BetaFast, t.BetaSlow = true, s.origContext, s.betaFast, s.betaSlow
	if s.factor > 1 {
		m := 0.1*math.Log(s.factor) + 1
		if s.logMul != 0 {
			m /= 0.1*s.logMul*math.Log(s.factor) + 1
		}
		t.Magnitude *= m
	}
}

// ropeFactors are the frequency divisors of the file: rope_freqs (Llama 3), else
// the LongRoPE set for the configured context.
func (g *graph) ropeFactors() []float32 {
	half := g.ropeDim / 2
	name := "rope_freqs.weight"
	if _, ok := g.src.Tensor(name); !ok {
		name = "rope_factors_short.weight"
		if g.runCtx > g.scaling.origContext {
			name = "rope_factors_long.weight"
		}
	}
	t, ok := g.src.Tensor(name)
	if !ok {
		return nil
	}
	if t.Type != tensor.F32 || t.Cols() != half || t.Rows() != 1 {
		g.fail("tensor %q is %v %v, want F32 [%d]", name, t.Type, t.Dims, half)
		return nil
	}
	data, err := g.src.Data(t)
	if err != nil {
		g.fail("tensor %q: %w", name, err)
		return nil
	}
	out := make([]float32, half)
	if err := tensor.Dequantize(tensor.F32, out, data); err != nil {
		g.fail("tensor %q: %w", name, err)
		return nil
	}
	for i, f := range out {
		if !(f > 0) {
			g.fail("tensor %q: factor %d is %v", name, i, f)
			return nil
		}
	}
	return out
}
