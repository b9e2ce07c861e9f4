package split

import (
	"errors"
	"fmt"
	"math"

	"ganglion/gpu/ops"
)

// Program is both halves compiled for a shape.
type Program struct {
	rt      *Runtime
	shape   ops.Shape
	halves  [2]ops.Program
	batches [2]ops.Batch
	rows    ops.Result // of the first half
	embeds  []float32  // what crosses: [rows, width]
	closed  bool
}

// prepare makes what is the same in all batches: every row of the first half is wanted
// as a whole, and none of the second has a token.
func (p *Program) prepare() {
	n := p.shape.Rows
	p.batches[0].Outs, p.batches[0].Want = make([]int32, n), make([]ops.Want, n)
	p.batches[1].Tokens = make([]int32, n)
	p.embeds = make([]float32, n*p.rt.width)
	for i := range n {
		p.batches[0].Outs[i], p.batches[0].Want[i] = int32(i), ops.Want{Kind: ops.WantRow}
		p.batches[1].Tokens[i] = -1
	}
}

// Run executes a batch on one side after the other.
func (p *Program) Run(b *ops.Batch, r *ops.Result) error {
	if p.closed {
		return fmt.Errorf("split: run: %w", ops.ErrClosed)
	}
	if err := p.rt.usable("run"); err != nil {
		return err
	}
	if err := b.CheckRun(p.rt.plan, p.rt.opts, p.rt.paging, p.shape); err != nil {
		return err
	}
	rows := len(b.Tokens)
	early, late := p.batches[0], p.batches[1]
	early.Tokens, early.Pos, early.Slot, early.Embeds, early.Scales = b.Tokens, b.Pos, b.Slot, b.Embeds, b.Scales
	early.Rotary, early.Spans, early.Stop = b.Rotary, b.Spans, b.Stop
	early.Outs, early.Want = early.Outs[:rows], early.Want[:rows]
	early.Pages = p.rt.sides[0].tables(p.rt, b.Pages)
	if err := p.halves[0].Run(&early, &p.rows); err != nil {
		return p.rt.sides[0].failed("run", err)
	}
	if err := p.handOver(rows); err != nil {
		return p.rt.sides[0].failed("run", err)
	}
	late.Tokens, late.Pos, late.Slot, late.Outs, late.Want, late.Scales = late.Tokens[:rows], b.Pos, b.Slot, b.Outs, b.Want, b.Scales
	late.Rotary, late.Spans, late.Stop = b.Rotary, b.Spans, b.Stop
	late.Embeds = p.embeds[:rows*p.rt.width]
	late.Pages = p.rt.sides[1].tables(p.rt, b.Pages)
	if err := p.halves[1].Run(&late, r); err != nil {
		return p.rt.sides[1].failed("run", err)
	}
	return nil
}

// handOver makes what came back of the first half the embeddings of the second. A row
// with a number that is not finite comes without its numbers: nothing of it can be used,
// and as NaN it says so in its own head and in no other.
func (p *Program) handOver(rows int) error {
	if len(p.rows.Heads) != rows {
		return fmt.Errorf("%d rows came back of %d", len(p.rows.Heads), rows)
	}
	for i, h := range p.rows.Heads {
		to := p.embeds[i*p.rt.width : (i+1)*p.rt.width]
		if h.Err != nil {
			for c := range to {
				to[c] = float32(math.NaN())
			}
			continue
		}
		if len(h.Row) != len(to) {
			return fmt.Errorf("row %d has %d numbers of %d", i, len(h.Row), len(to))
		}
		copy(to, h.Row)
	}
	return nil
}

// Close frees both halves. It may be called twice.
func (p *Program) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	var errs []error
	for _, h := range p.halves {
		if h != nil {
			errs = append(errs, h.Close())
		}
	}
	return errors.Join(errs...)
}
