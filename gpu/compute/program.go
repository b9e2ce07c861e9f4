package compute

import (
	"errors"
	"fmt"
	"slices"

	"ganglion/gpu/ops"
)

// Program is a plan compiled for a shape. What depends on the length of the KV cache is
// lowered and recorded when a batch first needs it.
type Program struct {
	rt    *Runtime
	shape ops.Shape // of a batch
	part  ops.Shape // of what is lowered: larger batches run in parts

	lists  map[int]*recording // by bucket of chunks
	heads  []headScratch      // by output
	back   []byte             // what was read last
	closed bool
	stats  Stats
}

// Stats counts what the last run of a program did.
type Stats struct {
	Dispatches  int   // commands submitted
	Submissions int   // device programs submitted
	WrittenTo   int64 // bytes written to the device
	ReadBack    int64 // bytes read from it
}

// Compile prepares a program for batches of up to s.Rows rows and s.Outs outputs.
func (r *Runtime) Compile(s ops.Shape) (ops.Program, error) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if err := r.usable("compile"); err != nil {
		return nil, err
	}
	if s.Rows <= 0 || s.Rows > r.opts.MaxRows || s.Outs < 0 || s.Outs > s.Rows {
		return nil, fmt.Errorf("compute: compile: %d rows and %d outputs of at most %d rows", s.Rows, s.Outs, r.opts.MaxRows)
	}
	p := &Program{rt: r, shape: s, part: r.part(s), lists: make(map[int]*recording), heads: make([]headScratch, s.Outs)}
	if _, err := p.list(1); err != nil {
		return nil, errors.Join(r.failed("compile", err), p.forget())
	}
	r.programs[p] = struct{}{}
	return p, nil
}

// part bounds the rows that are computed at once by what a binding can see of the
// activations. Results do not depend on it, for a row's result depends on its own
// sequence alone.
func (r *Runtime) part(s ops.Shape) ops.Shape {
	limits := r.b.dev.Limits()
	most := func(width int) int {
		n := min(limits.BindingBytes, limits.BufferBytes) / int64(4*max(width, 1))
		return int(max(1, min(n, limits.Groups[1])))
	}
	rows := min(s.Rows, most(max(r.layout.RowWidth, r.plan.Embed)))
	return ops.Shape{Rows: rows, Outs: min(max(s.Outs, 1), rows, most(r.layout.OutWidth))}
}

// list is the recording for a bucket of chunks, lowered and recorded when it is not.
func (p *Program) list(chunks int) (*recording, error) {
	rec := p.lists[chunks]
	if rec == nil {
		l, err := lower(p.rt, p.part, chunks)
		if err != nil {
			return nil, err
		}
		rec = &recording{lowered: l, main: cuts{b: p.rt.b, list: l.list}, top: cuts{b: p.rt.b, list: l.top}}
		p.lists[chunks] = rec
	}
	if err := p.rt.growShared(); err != nil {
		return nil, err
	}
	return rec, errors.Join(rec.main.record(), rec.top.record())
}

// bucket rounds the number of chunks that a batch needs up to a power of two, so that
// a growing sequence is recorded a few times only.
func (r *Runtime) bucket(chunks int) int {
	b := 1
	for b < chunks {
		b *= 2
	}
	return min(b, (r.opts.Context+ops.KVChunk-1)/ops.KVChunk)
}

// Run executes one batch.
func (p *Program) Run(b *ops.Batch, res *ops.Result) error {
	r := p.rt
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if p.closed {
		return fmt.Errorf("compute: run: %w", ops.ErrClosed)
	}
	if err := r.usable("run"); err != nil {
		return err
	}
	if err := b.CheckRun(r.plan, r.opts, r.paging, p.shape); err != nil {
		return err
	}
	p.stats = Stats{}
	defer func() { r.b.last = p.stats }()
	res.Heads = res.Heads[:0]
	for at := 0; at < len(b.Tokens); {
		part, rows := p.cut(b, at)
		if err := p.runPart(part, res); err != nil {
			return r.failed("run", err)
		}
		at += rows
	}
	return nil
}

// Stats tells what the last run did.
func (p *Program) Stats() Stats { return p.stats }

// cut is the part of a batch from row at on that is computed at once: as many rows and
// outputs as the lists are lowered for.
func (p *Program) cut(b *ops.Batch, at int) (part *ops.Batch, rows int) {
	if at == 0 && len(b.Tokens) <= p.part.Rows && len(b.Outs) <= p.part.Outs {
		return b, len(b.Tokens)
	}
	to := min(at+p.part.Rows, len(b.Tokens))
	part = &ops.Batch{Pages: b.Pages}
	for i, r := range b.Outs {
		if int(r) < at || int(r) >= to {
			continue
		}
		if len(part.Outs) == p.part.Outs {
			to = int(r)
			break
		}
		part.Outs, part.Want = append(part.Outs, r-int32(at)), append(part.Want, b.Want[i])
	}
	part.Tokens, part.Pos, part.Slot = b.Tokens[at:to], b.Pos[at:to], b.Slot[at:to]
	if b.Embeds != nil {
		n := p.rt.plan.Embed
		part.Embeds = b.Embeds[min(at*n, len(b.Embeds)):min(to*n, len(b.Embeds))]
	}
	if b.Scales != nil {
		n := p.rt.plan.Adapters
		part.Scales = b.Scales[at*n : to*n]
	}
	return part, to - at
}

// runPart writes what a batch needs, submits the lists and reads the heads.
func (p *Program) runPart(b *ops.Batch, res *ops.Result) error {
	last := int32(0)
	for _, pos := range b.Pos {
		last = max(last, pos)
	}
	rec, err := p.list(p.rt.bucket(int(last)/ops.KVChunk + 1))
	if err != nil {
		return err
	}
	if err := p.write(p.rt.batch, rec.lowered.batch.fill(b)); err != nil {
		return err
	}
	if err := p.writeEmbeds(b); err != nil {
		return err
	}
	lists := []*cuts{&rec.main}
	if slices.ContainsFunc(b.Want, onDevice) {
		lists = append(lists, &rec.top)
	}
	if err := p.rt.b.submit(&p.stats, lists...); err != nil {
		return err
	}
	return p.readHeads(rec.lowered, b, res)
}

func (p *Program) write(m *memory, data []byte) error {
	p.stats.WrittenTo += int64(len(data))
	return m.buf.Write(0, data)
}

// writeEmbeds uploads the embeddings of a batch up to the last row that needs one.
func (p *Program) writeEmbeds(b *ops.Batch) error {
	rows := 0
	for i, t := range b.Tokens {
		if t < 0 {
			rows = i + 1
		}
	}
	if rows == 0 || b.Embeds == nil {
		return nil
	}
	return p.write(p.rt.embeds, appendFloats(nil, b.Embeds[:rows*p.rt.plan.Embed]))
}

// forget drops what is recorded; the lists stay lowered.
func (p *Program) forget() error {
	var errs []error
	for _, rec := range p.lists {
		errs = append(errs, rec.main.forget(), rec.top.forget())
	}
	return errors.Join(errs...)
}

// Close frees the program. It may be called twice.
func (p *Program) Close() error {
	p.rt.b.mu.Lock()
	defer p.rt.b.mu.Unlock()
	return p.close()
}

func (p *Program) close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	delete(p.rt.programs, p)
	if err := p.forget(); err != nil {
		return fmt.Errorf("compute: close: %w", translate(err))
	}
	return nil
}
