package phase

import (
	"fmt"

	"ganglion/gpu/ops"
)

// promptRows is how many rows of one sequence a batch must have to be worth another
// device: below, a prompt is read as fast where it is needed next.
const promptRows = 16

// phaseOf says which phase a sequence's rows in a batch belong to, of which there are so
// many from a position on, with so many outputs wanted. A prompt wants its last row's, a
// guess that is verified all of them.
func phaseOf(_, rows, wanted int) Phase {
	if rows >= promptRows && 2*wanted <= rows {
		return Prompt
	}
	return Decode
}

// Program is a shape that batches fit into; what runs is compiled by the sides.
type Program struct {
	rt     *Runtime
	shape  ops.Shape
	closed bool
}

// partBatch is the part of a batch that one side runs.
type partBatch struct {
	batch  ops.Batch
	heads  []int // by output of the part: the batch's
	result ops.Result
}

// Run divides a batch by phases, carries what each part looks back on and runs the parts.
func (p *Program) Run(b *ops.Batch, result *ops.Result) error {
	r := p.rt
	if p.closed {
		return fmt.Errorf("phase: run: %w", ops.ErrClosed)
	}
	if err := r.usable("run"); err != nil {
		return err
	}
	if err := b.Check(r.plan, r.opts); err != nil {
		return err
	}
	if err := b.CheckPages(r.paging); err != nil {
		return err
	}
	if len(b.Tokens) > p.shape.Rows || len(b.Outs) > p.shape.Outs {
		return fmt.Errorf("phase: run: %d rows and %d outputs in a program for %d and %d", len(b.Tokens), len(b.Outs), p.shape.Rows, p.shape.Outs)
	}
	if on, one := r.onePhase(b); one {
		return r.runOn(on, p.shape, b, result)
	}
	r.divide(b)
	result.Heads = append(result.Heads[:0], make([]ops.Head, len(b.Outs))...)
	for _, phase := range []Phase{Decode, Prompt} { // tokens first: they are waited for
		part := &r.sides[phase].part
		if err := r.runOn(phase, p.bucket(&part.batch), &part.batch, &part.result); err != nil {
			return err
		}
		if len(part.result.Heads) != len(part.heads) {
			return r.sides[phase].failed("run", fmt.Errorf("%d heads of %d outputs", len(part.result.Heads), len(part.heads)))
		}
		for i, h := range part.result.Heads {
			result.Heads[part.heads[i]] = h
		}
	}
	return nil
}

// decide is the phase of a run, whose outputs begin at output out of the batch; next is
// where those of the following run do.
func (r *Runtime) decide(b *ops.Batch, q run, out int) (on Phase, next int) {
	for next = out; next < len(b.Outs) && int(b.Outs[next]) < q.to; next++ {
	}
	return r.b.decide(int(q.first), q.to-q.from, next-out), next
}

// onePhase tells whether all of a batch belongs to one phase, and to which.
func (r *Runtime) onePhase(b *ops.Batch) (on Phase, one bool) {
	out := 0
	for from := 0; from < len(b.Slot); {
		q := nextRun(b, from)
		var phase Phase
		phase, out = r.decide(b, q, out)
		if from > 0 && phase != on {
			return on, false
		}
		on, from = phase, q.to
	}
	return on, true
}

// divide fills both sides' parts of a batch.
func (r *Runtime) divide(b *ops.Batch) {
	for _, s := range r.sides {
		s.part.clear(b)
	}
	out := 0
	for from := 0; from < len(b.Slot); {
		q := nextRun(b, from)
		on, next := r.decide(b, q, out)
		r.sides[on].part.add(r.plan, b, q, out, next)
		from, out = q.to, next
	}
}

func (p *partBatch) clear(b *ops.Batch) {
	c := &p.batch
	c.Tokens, c.Pos, c.Slot, c.Outs, c.Want = c.Tokens[:0], c.Pos[:0], c.Slot[:0], c.Outs[:0], c.Want[:0]
	c.Stop = b.Stop
	c.Pages, c.Embeds, c.Scales, p.heads = b.Pages, c.Embeds[:0], c.Scales[:0], p.heads[:0]
	if b.Embeds == nil {
		c.Embeds = nil
	}
	if b.Scales == nil {
		c.Scales = nil
	}
	c.Rotary, c.Spans = c.Rotary[:0], c.Spans[:0]
	if b.Rotary == nil {
		c.Rotary = nil
	}
	if b.Spans == nil {
		c.Spans = nil
	}
}

// add appends a run and its outputs [out, next).
func (p *partBatch) add(plan *ops.Plan, b *ops.Batch, q run, out, next int) {
	c := &p.batch
	at := len(c.Tokens)
	c.Tokens = append(c.Tokens, b.Tokens[q.from:q.to]...)
	c.Pos = append(c.Pos, b.Pos[q.from:q.to]...)
	c.Slot = append(c.Slot, b.Slot[q.from:q.to]...)
	if b.Embeds != nil { // as far as they go, for a row with a token needs none
		n := plan.EmbedWidth()
		c.Embeds = append(c.Embeds, make([]float32, at*n-len(c.Embeds))...)
		c.Embeds = append(c.Embeds, b.Embeds[min(q.from*n, len(b.Embeds)):min(q.to*n, len(b.Embeds))]...)
	}
	if b.Scales != nil {
		c.Scales = append(c.Scales, b.Scales[q.from*plan.Adapters:q.to*plan.Adapters]...)
	}
	if b.Rotary != nil {
		c.Rotary = append(c.Rotary, b.Rotary[q.from*ops.Axes:q.to*ops.Axes]...)
	}
	if b.Spans != nil {
		c.Spans = append(c.Spans, b.Spans[q.from*plan.Spans:q.to*plan.Spans]...)
	}
	for i := out; i < next; i++ {
		c.Outs, c.Want = append(c.Outs, int32(at+int(b.Outs[i])-q.from)), append(c.Want, b.Want[i])
		p.heads = append(p.heads, i)
	}
}

// runOn runs a batch on one side.
func (r *Runtime) runOn(on Phase, shape ops.Shape, b *ops.Batch, result *ops.Result) error {
	s := r.sides[on]
	prog, err := s.program(shape)
	if err != nil {
		return err
	}
	for from := 0; from < len(b.Slot); {
		q := nextRun(b, from)
		if err := r.bring(on, b, q); err != nil {
			return err
		}
		from = q.to
	}
	r.eachRun(b, func(q run) { r.write(b, q) })
	if err := prog.Run(b, result); err != nil {
		return s.failed("run", err)
	}
	r.eachRun(b, func(q run) { r.wrote(on, b, q) })
	return nil
}

func (r *Runtime) eachRun(b *ops.Batch, f func(q run)) {
	for from := 0; from < len(b.Slot); {
		q := nextRun(b, from)
		f(q)
		from = q.to
	}
}

// bucket is the shape for a part of a batch: in steps of eight times, as the engine's, so
// that few tokens do not run in a program for a whole prompt.
func (p *Program) bucket(b *ops.Batch) ops.Shape {
	step := func(n, most int) int {
		s := 1
		for s < n {
			s *= 8
		}
		return min(s, most)
	}
	rows := step(len(b.Tokens), p.shape.Rows)
	return ops.Shape{Rows: rows, Outs: min(step(max(len(b.Outs), 1), max(p.shape.Outs, 1)), rows)}
}

// Close makes later runs fail. What the sides compiled stays until the runtime is closed,
// for other programs use it too. It may be called twice.
func (p *Program) Close() error {
	p.closed = true
	return nil
}
