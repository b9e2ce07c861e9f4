package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ganglion/gpu/tensor"
)

// checker walks a plan in order and remembers what earlier operations did.
type checker struct {
	p       *Plan
	written [][]bool    // by buffer: its written columns; nil before the first write
	stored  []int       // caches with a KVStore
	owned   []int       // states with an operation
	experts map[Buf]int // number of experts a router chose from, by buffer of ids
}

// parts checks what the operations refer to.
func (c *checker) parts() error {
	p := c.p
	if p.Vocab <= 0 || p.Embed <= 0 {
		return fmt.Errorf("vocabulary of %d, residual stream of %d", p.Vocab, p.Embed)
	}
	if p.Slices < 0 || p.Spans < 0 {
		return fmt.Errorf("%d slices, %d spans", p.Slices, p.Spans)
	}
	if p.Tokens < NoTokens {
		return fmt.Errorf("%d token ids", p.Tokens)
	}
	if p.Adapters < 0 {
		return fmt.Errorf("%d adapters", p.Adapters)
	}
	for _, b := range p.Buffers {
		if b.Width <= 0 || b.Rows > PerOut || b.Elem > I32 {
			return fmt.Errorf("buffer %q: width %d, rows %d, type %d", b.Name, b.Width, b.Rows, b.Elem)
		}
	}
	for _, k := range p.Caches {
		if k.KVHeads <= 0 || k.KeyDim <= 0 || k.ValueDim <= 0 || k.Window < 0 {
			return fmt.Errorf("cache %q: %d heads of %d and %d, window %d", k.Name, k.KVHeads, k.KeyDim, k.ValueDim, k.Window)
		}
	}
	for _, s := range p.States {
		if s.Floats < 0 {
			return fmt.Errorf("state %q: %d floats", s.Name, s.Floats)
		}
	}
	for i, t := range p.Tables {
		if err := t.check(); err != nil {
			return fmt.Errorf("table %d: %w", i, err)
		}
	}
	for _, l := range p.Lists {
		if err := l.check(); err != nil {
			return fmt.Errorf("list %q: %w", l.Name, err)
		}
	}
	for _, w := range p.Weights {
		if err := w.check(); err != nil {
			return fmt.Errorf("weight %q: %w", w.Name, err)
		}
	}
	return nil
}

// check compares the weight's shape with its bytes.
func (w *Weight) check() error {
	if !w.Type.Dequantizable() {
		return fmt.Errorf("type %v is no weight type", w.Type)
	}
	if w.Cols <= 0 || w.Rows <= 0 || w.Experts < 0 {
		return fmt.Errorf("shape [%d, %d, %d]", w.Experts, w.Rows, w.Cols)
	}
	row, err := tensor.RowBytes(w.Type, w.Cols)
	if err != nil {
		return err
	}
	matrices := max(w.Experts, 1)
	if w.Rows > len(w.Data) || matrices > len(w.Data)/w.Rows || len(w.Data) != matrices*w.Rows*row {
		return fmt.Errorf("%d bytes for shape [%d, %d, %d] of %v", len(w.Data), w.Experts, w.Rows, w.Cols, w.Type)
	}
	return nil
}

// op checks one operation and notes what it did.
func (c *checker) op(op Op) error {
	if err := c.operands(op); err != nil {
		return err
	}
	if err := op.check(c.p); err != nil {
		return err
	}
	switch o := op.(type) {
	case *KVStore:
		c.stored = append(c.stored, o.Cache)
	case *Attention:
		if !slices.Contains(c.stored, o.Cache) {
			return fmt.Errorf("cache %d has no kvstore before", o.Cache)
		}
	case *Route:
		c.experts[o.IDs.Buf] = max(c.experts[o.IDs.Buf], o.In.Width/max(o.Share, 1))
	case *ExpertMatMul:
		return c.chosen(o.IDs, o.W.Experts)
	case *LowRank:
		if o.IDs.Width > 0 {
			return c.chosen(o.IDs, o.A.Experts)
		}
	case *ExpertSum:
		if o.PerExpert != nil {
			return c.chosen(o.IDs, o.PerExpert.elements())
		}
	case *ShortConv:
		return c.own(o.State)
	case *Mamba1:
		return c.own(o.State)
	case *Mamba2:
		return c.own(o.State)
	case *GatedDelta:
		return c.own(o.State)
	}
	return nil
}

// chosen reports ids that may name an expert which does not exist.
func (c *checker) chosen(ids View, experts int) error {
	if n := c.experts[ids.Buf]; n > max(experts, 1) {
		return fmt.Errorf("ids of %d experts for a stack of %d", n, experts)
	}
	return nil
}

// own reports recurrent state that two operations would update.
func (c *checker) own(state int) error {
	if slices.Contains(c.owned, state) {
		return fmt.Errorf("state %d has an operation already", state)
	}
	c.owned = append(c.owned, state)
	return nil
}

// operands checks weights and views and marks the columns that are written.
func (c *checker) operands(op Op) error {
	needed, optional := op.weights()
	for i, w := range slices.Concat(needed, optional) {
		if w == nil && i < len(needed) {
			return errors.New("a needed weight is missing")
		}
		if w != nil && !slices.Contains(c.p.Weights, w) {
			return fmt.Errorf("weight %q is not registered with the plan", w.Name)
		}
	}
	for _, v := range op.Reads() {
		if err := c.readable(v); err != nil {
			return err
		}
	}
	for _, v := range op.Writes() {
		if err := c.view(v); err != nil {
			return err
		}
		if c.written[v.Buf] == nil {
			c.written[v.Buf] = make([]bool, c.p.Buffers[v.Buf].Width)
		}
		for i := range v.Width {
			c.written[v.Buf][v.Off+i] = true
		}
	}
	return nil
}

func (c *checker) view(v View) error {
	if v.Buf < 0 || int(v.Buf) >= len(c.p.Buffers) {
		return fmt.Errorf("buffer %d does not exist", v.Buf)
	}
	if n := c.p.Buffers[v.Buf].Width; v.Off < 0 || v.Width <= 0 || v.Off > n || v.Width > n-v.Off {
		return fmt.Errorf("%d columns from %d outside buffer %q of width %d", v.Width, v.Off, c.p.Buffers[v.Buf].Name, n)
	}
	return nil
}

// readable checks a view that must have been written in all its columns.
func (c *checker) readable(v View) error {
	if err := c.view(v); err != nil {
		return err
	}
	w := c.written[v.Buf]
	if w == nil || slices.Contains(w[v.Off:v.Off+v.Width], false) {
		return fmt.Errorf("reads columns [%d,%d) of buffer %q before they are written",
			v.Off, v.Off+v.Width, c.p.Buffers[v.Buf].Name)
	}
	return nil
}

func (c *checker) logits() error {
	v := c.p.Logits
	if err := c.readable(v); err != nil {
		return err
	}
	if b := c.p.Buffers[v.Buf]; b.Rows != PerOut || b.Elem != F32 || v.Width != c.p.Vocab {
		return fmt.Errorf("must be %d columns of floats per output", c.p.Vocab)
	}
	return nil
}

// check reports a table that would give angles of no meaning.
func (t *RoPETable) check() error {
	positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
	switch {
	case t.NRot <= 0 || t.NRot%2 != 0:
		return fmt.Errorf("rotates %d columns", t.NRot)
	case !positive(t.Base) || !positive(t.Scale) || !positive(t.Magnitude):
		return fmt.Errorf("base %v, scale %v, magnitude %v: all must be positive", t.Base, t.Scale, t.Magnitude)
	case t.Factors != nil && len(t.Factors) != t.NRot/2:
		return fmt.Errorf("%d factors for %d columns", len(t.Factors), t.NRot)
	case t.Axes != nil && (len(t.Axes) != t.NRot/2 || slices.Max(t.Axes) >= Axes):
		return fmt.Errorf("axes %v for %d columns", t.Axes, t.NRot)
	case t.Period < 0 || (t.Period > 0 && t.YaRN):
		return fmt.Errorf("frequencies begin again every %d pairs, YaRN %v", t.Period, t.YaRN)
	case t.YaRN && (t.OriginalContext <= 0 || t.Base == 1 || !positive(t.BetaFast) || !positive(t.BetaSlow)):
		return fmt.Errorf("YaRN over a context of %d, betas %v and %v", t.OriginalContext, t.BetaFast, t.BetaSlow)
	}
	return nil
}
