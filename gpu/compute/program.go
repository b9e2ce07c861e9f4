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
	part  ops.Shape // of what is lowered at most: larger batches run in parts

	lists  map[listKey]*recording
	heads  []headScratch // by output
	back   []byte        // what was read last
	closed bool
	stats  Stats
}

// listKey tells recordings of a program apart.
type listKey struct {
	chunks int  // bucket of them
	whole  bool // not divided to keep dispatches short, for pictures that must not be cut
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
	p := &Program{rt: r, shape: s, part: r.part(s), lists: make(map[listKey]*recording), heads: make([]headScratch, s.Outs)}
	if _, err := p.list(listKey{chunks: 1}); err != nil {
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
	rows := min(s.Rows, most(max(r.layout.RowWidth, r.plan.EmbedWidth())))
	return ops.Shape{Rows: rows, Outs: min(max(s.Outs, 1), rows, most(r.layout.OutWidth))}
}

// list is a recording, lowered and recorded when it is not, or when the device's pace is
// another one than what it was divided by.
func (p *Program) list(key listKey) (*recording, error) {
	rec := p.lists[key]
	if rec != nil && !key.whole && !rec.lowered.inPace() {
		if err := rec.forget(); err != nil {
			return nil, err
		}
		rec = nil
	}
	if rec == nil {
		lowered := p.divide
		if key.whole {
			lowered = func(chunks int) (*lowering, error) { return lower(p.rt, p.part, chunks) }
		}
		l, err := lowered(key.chunks)
		if err != nil {
			return nil, err
		}
		l.claim()
		rec = &recording{lowered: l}
		rec.main, rec.top, rec.stats = cuts{b: p.rt.b, list: l.list}, cuts{b: p.rt.b, list: l.top}, cuts{b: p.rt.b, list: l.stats}
		p.lists[key] = rec
	}
	if err := p.rt.growShared(); err != nil {
		return nil, err
	}
	return rec, errors.Join(rec.main.record(), rec.top.record())
}

// divide lowers the plan for a bucket of chunks and for as many rows of the part as keep
// its dispatches short: half of them, or of the outputs, as long as that makes the longest
// one shorter. Where rows take units of others it is not divided.
func (p *Program) divide(chunks int) (*lowering, error) {
	best, err := lower(p.rt, p.part, chunks)
	together := len(p.rt.plan.Lists) > 0
	for err == nil && !together && !best.inTime(best.longest) {
		rows, outs := (best.shape.Rows+1)/2, (best.shape.Outs+1)/2
		var l *lowering
		for _, s := range []ops.Shape{{Rows: best.shape.Rows, Outs: outs}, {Rows: rows, Outs: min(best.shape.Outs, rows)}} {
			if s == best.shape {
				continue
			}
			if l, err = lower(p.rt, s, chunks); err != nil || l.longest < best.longest {
				break
			}
			l = nil
		}
		if l == nil {
			break
		}
		best, l.bounded = l, true
	}
	return best, err
}

// inPace tells whether the dispatches of a lowering are as long as they should be at the
// present pace of the device.
func (l *lowering) inPace() bool {
	now := &l.rt.b.pace
	if now.near(l.pace) {
		return true
	}
	return !l.bounded && now.scale()*l.longest <= l.rt.b.opts.Dispatch.Seconds()
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
	if len(b.Lists) > 0 && (len(b.Tokens) > p.part.Rows || len(b.Outs) > p.part.Outs) {
		return fmt.Errorf("compute: run: %d rows that refer to each other, %d are computed at once here: %w", len(b.Tokens), p.part.Rows, ops.ErrUnsupported)
	}
	p.stats = Stats{}
	defer func() { r.b.last = p.stats }()
	res.Heads = res.Heads[:0]
	for at := 0; at < len(b.Tokens); {
		rec, part, rows, err := p.next(b, at)
		if err == nil {
			err = p.runPart(rec, part, res)
		}
		if err != nil {
			return r.failed("run", err)
		}
		at += rows
	}
	return nil
}

// next is the part of a batch from row at on and what runs it. A picture that is longer
// than what keeps dispatches short runs as a whole all the same, but nothing behind it.
func (p *Program) next(b *ops.Batch, at int) (rec *recording, part *ops.Batch, rows int, err error) {
	for _, whole := range []bool{false, true} {
		if rec, err = p.list(listKey{p.rt.bucket(chunksOf(b.Pos[at:])), whole}); err != nil {
			return nil, nil, 0, err
		}
		most := rec.lowered.shape
		if whole {
			most.Rows = min(most.Rows, shortest(b, at))
		}
		if part, rows = p.cut(b, at, most); rows > 0 {
			return rec, part, rows, nil
		}
	}
	return nil, nil, 0, fmt.Errorf("row %d sees further than the %d rows and %d outputs that the device computes at once: %w",
		at, rec.lowered.shape.Rows, rec.lowered.shape.Outs, ops.ErrUnsupported)
}

// shortest is the least number of rows from row at on behind which a batch may be cut.
func shortest(b *ops.Batch, at int) int {
	to := at + 1
	for b.CutAt(at, to) < to {
		to++
	}
	return to - at
}

// Stats tells what the last run did.
func (p *Program) Stats() Stats { return p.stats }

// chunksOf is how many chunks the positions of some rows are in.
func chunksOf(pos []int32) int { return int(slices.Max(pos))/ops.KVChunk + 1 }

// cut is the part of a batch from row at on that is computed at once: as many rows and
// outputs as a list is lowered for; none where that would part a picture.
func (p *Program) cut(b *ops.Batch, at int, most ops.Shape) (part *ops.Batch, rows int) {
	if at == 0 && len(b.Tokens) <= most.Rows && len(b.Outs) <= most.Outs {
		return b, len(b.Tokens)
	}
	to := min(at+most.Rows, len(b.Tokens))
	first, _ := slices.BinarySearch(b.Outs, int32(at))
	if beyond := first + most.Outs; beyond < len(b.Outs) {
		to = min(to, int(b.Outs[beyond]))
	}
	if to = b.CutAt(at, to); to == at {
		return nil, 0
	}
	part = &ops.Batch{Pages: b.Pages, Stop: b.Stop}
	for i, r := range b.Outs[first:] {
		if int(r) < to {
			part.Outs, part.Want = append(part.Outs, r-int32(at)), append(part.Want, b.Want[first+i])
		}
	}
	part.Tokens, part.Pos, part.Slot = b.Tokens[at:to], b.Pos[at:to], b.Slot[at:to]
	if b.Embeds != nil {
		n := p.rt.plan.EmbedWidth()
		part.Embeds = b.Embeds[min(at*n, len(b.Embeds)):min(to*n, len(b.Embeds))]
	}
	if b.Rotary != nil {
		part.Rotary = b.Rotary[at*ops.Axes : to*ops.Axes]
	}
	if b.Spans != nil {
		n := p.rt.plan.Spans
		part.Spans = b.Spans[at*n : to*n]
	}
	if b.Scales != nil {
		n := p.rt.plan.Adapters
		part.Scales = b.Scales[at*n : to*n]
	}
	return part, to - at
}

// runPart writes what a part of a batch needs, submits the lists and reads the heads.
func (p *Program) runPart(rec *recording, b *ops.Batch, res *ops.Result) error {
	if p.rt.unsettled {
		if err := p.rt.settle(); err != nil {
			return err
		}
	}
	if err := p.write(p.rt.batch, rec.lowered.batch.fill(b)); err != nil {
		return err
	}
	if err := p.writeEmbeds(b, rec.lowered.shape.Rows); err != nil {
		return err
	}
	lists := []*cuts{&rec.main}
	var top, stats bool
	for _, w := range b.Want {
		t, s := p.rt.b.apart(w)
		top, stats = top || t, stats || s
	}
	if top {
		lists = append(lists, &rec.top)
	}
	if stats {
		lists = append(lists, &rec.stats)
	}
	for _, c := range lists[1:] { // not before: not all programs are asked for them
		if err := c.record(); err != nil {
			return err
		}
	}
	if err := p.rt.b.submit(&p.stats, b.Stop, lists...); err != nil {
		p.rt.unsettled = true
		return err
	}
	return p.readHeads(rec.lowered, b, res)
}

func (p *Program) write(m *memory, data []byte) error { return p.writeAt(m, 0, data) }

func (p *Program) writeAt(m *memory, at int64, data []byte) error {
	p.stats.WrittenTo += int64(len(data))
	return m.buf.Write(at, data)
}

// writeEmbeds uploads the embeddings of a batch up to the last row that needs one, slice
// by slice: the kernels have room for most rows of each.
func (p *Program) writeEmbeds(b *ops.Batch, most int) error {
	rows := 0
	for i, t := range b.Tokens {
		if t < 0 {
			rows = i + 1
		}
	}
	if rows == 0 || b.Embeds == nil {
		return nil
	}
	n, all := p.rt.plan.Embed, p.rt.plan.EmbedWidth()
	var plane []byte
	for slice := range all / n {
		plane = plane[:0]
		for r := range rows {
			plane = appendFloats(plane, b.Embeds[r*all+slice*n:][:n])
		}
		if err := p.writeAt(p.rt.embeds, 4*int64(slice*most*n), plane); err != nil {
			return err
		}
	}
	return nil
}

// forget drops what is recorded; the lists stay lowered.
func (p *Program) forget() error {
	var errs []error
	for _, rec := range p.lists {
		errs = append(errs, rec.forget())
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
