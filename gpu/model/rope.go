package model

import (
	"cmp"
	"math"
	"reflect"
	"slices"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// ropeSpec is a rotary embedding as a family wants it. Zero values take what the
// file says for global layers.
type ropeSpec struct {
	dim      int     // rotated columns; 0: rope.dimension_count
	base     float64 // 0: rope.freq_base
	factors  bool    // frequencies are divided by the file's factors where it has them
	sections sections

	// unscaled leaves rope.scaling out of the frequencies but keeps its magnitude, as
	// the local layers of most families do; unstretched leaves out both.
	unscaled, unstretched bool
}

// sections is how M-RoPE lays the position's parts (time, height, width, other)
// over the pairs of a head. In text the first three are the position. The fourth is
// always 0, so that a pair of the fourth section is not rotated.
type sections uint8

const (
	oneSection  sections = iota
	contiguous           // t…t h…h w…w other…other (Qwen2-VL)
	interleaved          // t h w t h w … (Qwen3-VL)
)

// rope makes the table of a rotary embedding; -1 when the file rotates no columns.
func (g *graph) rope(s ropeSpec) int {
	t := &ops.RoPETable{NRot: cmp.Or(s.dim, g.ropeDim), Base: cmp.Or(s.base, g.ropeBase), Scale: 1, Magnitude: 1}
	if t.NRot == 0 {
		return -1
	}
	if s.factors {
		t.Factors = g.ropeFactors(t.NRot / 2)
	}
	if s.sections != oneSection {
		g.lay(s.sections, t)
	}
	if !s.unstretched {
		g.stretch(t, s.unscaled)
	}
	for i, have := range g.Plan.Tables {
		if reflect.DeepEqual(have, t) {
			return i
		}
	}
	return g.Table(t)
}

// rotateAsFirst gives all layers the rotated width of the first one, local or global,
// as the reference does in most families with windows.
func (g *graph) rotateAsFirst(period int) {
	if g.local(0, period) {
		g.ropeDim = g.ropeDimSWA
	}
}

// mrope tells whether the file has M-RoPE sections; families that also come as text
// models rotate halves only then.
func (g *graph) mrope() bool { return g.ropeSections[0] > 0 && g.ropeSections[1] > 0 }

// stretch sets the file's rope.scaling. The magnitude under YaRN is the
// reference's: 0.1·ln f + 1, divided by the same with yarn_log_multiplier where the
// file has one; tables left unscaled get the quotient of the two only.
func (g *graph) stretch(t *ops.RoPETable, unscaled bool) {
	s := g.scaling
	t.Magnitude = s.attnFactor
	if !(t.Magnitude > 0) {
		g.fail("keys %q and %q: a factor of %v is not positive", g.key("rope.scaling.attn_factor"), g.key("rope.scaling.yarn_attn_factor"), t.Magnitude)
	}
	yarn := s.kind == "yarn"
	if yarn && s.factor > 1 && s.logMul != 0 {
		t.Magnitude /= 0.1*s.logMul*math.Log(s.factor) + 1
	}
	if unscaled {
		return
	}
	t.Scale = 1 / s.factor
	if yarn {
		t.YaRN, t.OriginalContext, t.BetaFast, t.BetaSlow = true, s.origContext, s.betaFast, s.betaSlow
		if s.factor > 1 {
			t.Magnitude *= 0.1*math.Log(s.factor) + 1
		}
	}
}

// lay gives every pair its axis. Those of the fourth section have an infinite divisor:
// angle 0.
func (g *graph) lay(s sections, t *ops.RoPETable) {
	half, sec := t.NRot/2, g.ropeSections
	sum := sec[0] + sec[1] + sec[2] + sec[3]
	if sum <= 0 {
		g.fail("key %q is missing", g.key("rope.dimension_sections"))
		return
	}
	t.Axes = make([]uint8, half)
	for i := range half {
		axis, at := 0, i%sum
		if s == interleaved {
			axis = at % 3
			if at >= 3*sec[axis] {
				axis = ops.Axes
			}
		} else {
			for from := 0; axis < ops.Axes && at >= from+sec[axis]; axis++ {
				from += sec[axis]
			}
		}
		if axis < ops.Axes {
			t.Axes[i] = uint8(axis)
			continue
		}
		if t.Factors == nil {
			t.Factors = slices.Repeat([]float32{1}, half)
		}
		t.Factors[i] = float32(math.Inf(1))
	}
}

// ropeFactors are the frequency divisors of the file: rope_freqs (Llama 3), else
// the LongRoPE set for the configured context.
func (g *graph) ropeFactors(half int) []float32 {
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
	// Where less than a head is rotated, the factors may be those of a whole head.
	if t.Type != tensor.F32 || (t.Cols() != half && t.Cols() != g.keyLen/2) || t.Cols() < half || t.Rows() != 1 {
		g.fail("tensor %q is %v %v, want F32 [%d]", name, t.Type, t.Dims, half)
		return nil
	}
	out := g.floats(name, t)
	if len(out) < half {
		return nil // the fault is noted
	}
	out = out[:half]
	for i, f := range out {
		if !(f > 0) {
			g.fail("tensor %q: factor %d is %v", name, i, f)
			return nil
		}
	}
	return out
}
