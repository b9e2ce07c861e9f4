package encoder

import (
	"context"
	"errors"
	"fmt"

	"ganglion/gpu/ops"
)

// tower is a loaded plan. It belongs to one goroutine at a time.
type tower struct {
	plan *ops.Plan
	opts ops.Options
	rt   ops.Runtime

	shape  ops.Shape // of prog
	prog   ops.Program
	pages  []int32
	batch  ops.Batch
	result ops.Result
}

// job is one run of a tower.
type job struct {
	rows, outs int
	embeds     []float32  // [rows, Plan.Embed]
	rotary     []int32    // [rows, ops.Axes]; nil: the plan does not look
	windows    []ops.Span // [rows]: what layers with windows see; nil: none have any
	lists      [][]int32  // of Plan.Lists

	// Where line > 0, ending stands behind each line of so many output rows but the last.
	line   int
	ending []float32
}

// finish puts the ends of lines between a job's output rows.
func (j *job) finish(rows []float32) []float32 {
	if j.line == 0 {
		return rows
	}
	n := j.line * len(j.ending)
	var all []float32
	for at := 0; at < len(rows); at += n {
		if at > 0 {
			all = append(all, j.ending...)
		}
		all = append(all, rows[at:at+n]...)
	}
	return all
}

// errJob is wrapped where a job itself is at fault and not the device.
var errJob = errors.New("encoder")

// load puts a plan on a backend, for jobs of up to rows rows.
func load(ctx context.Context, b ops.Backend, p *ops.Plan, rows int, c Config) (*tower, error) {
	t := &tower{plan: p, opts: ops.Options{Slots: 1, Context: rows, MaxRows: rows, Numerics: c.Numerics, KV: ops.KVF32, Threads: max(c.Threads, 1)}}
	rt, err := b.Load(ctx, p, t.opts, c.Progress)
	if err != nil {
		return nil, err
	}
	t.rt = rt
	t.pages = make([]int32, ops.NewPaging(p, t.opts).Entries())
	for i := range t.pages {
		t.pages[i] = int32(i)
	}
	return t, nil
}

// run computes a job's output rows: [outs, Vocab], the caller's own. It ends early, with the
// context's error, once the context is done.
func (t *tower) run(ctx context.Context, j *job) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if j.rows > t.opts.MaxRows || j.outs > j.rows {
		return nil, fmt.Errorf("%w: %d rows and %d outputs, at most %d rows", errJob, j.rows, j.outs, t.opts.MaxRows)
	}
	if s := (ops.Shape{Rows: j.rows, Outs: j.outs}); t.prog == nil || s != t.shape {
		if t.prog != nil {
			t.prog.Close()
			t.prog = nil
		}
		prog, err := t.rt.Compile(s)
		if err != nil {
			return nil, err
		}
		t.prog, t.shape = prog, s
	}
	t.fill(j)
	stop := new(ops.Stop)
	defer context.AfterFunc(ctx, stop.Set)()
	t.batch.Stop = stop
	if err := t.prog.Run(&t.batch, &t.result); err != nil {
		if errors.Is(err, ops.ErrStopped) {
			return nil, ctx.Err()
		}
		return nil, err
	}
	out := make([]float32, 0, j.outs*t.plan.Vocab)
	for i, h := range t.result.Heads {
		if h.Err != nil {
			return nil, fmt.Errorf("%w: row %d: %w", errJob, i, h.Err)
		}
		out = append(out, h.Row...)
	}
	return out, nil
}

// fill makes the batch of a job: one sequence in slot 0.
func (t *tower) fill(j *job) {
	b := &t.batch
	*b = ops.Batch{Tokens: b.Tokens[:0], Pos: b.Pos[:0], Slot: b.Slot[:0], Outs: b.Outs[:0], Want: b.Want[:0], Spans: b.Spans[:0],
		Pages: t.pages, Embeds: j.embeds, Rotary: j.rotary, Lists: j.lists}
	for r := range j.rows {
		b.Tokens, b.Pos, b.Slot = append(b.Tokens, -1), append(b.Pos, int32(r)), append(b.Slot, 0)
		if t.plan.Spans > 0 {
			b.Spans = append(b.Spans, ops.Span{Until: int32(j.rows)})
		}
		if t.plan.Spans > 1 {
			b.Spans = append(b.Spans, j.windows[r])
		}
		if r < j.outs {
			b.Outs, b.Want = append(b.Outs, int32(r)), append(b.Want, ops.Want{Kind: ops.WantRow})
		}
	}
	if t.plan.Spans == 0 {
		b.Spans = nil
	}
}

func (t *tower) close() error {
	if t == nil || t.rt == nil {
		return nil
	}
	if t.prog != nil {
		t.prog.Close()
	}
	return t.rt.Close()
}
