package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// Answer is the outcome of one known-answer test.
type Answer struct {
	Name    string `json:"name"`              // "matmul/q4_k"
	Mode    string `json:"mode"`              // "fast", "exact"
	Fault   string `json:"fault,omitempty"`   // what is wrong, or missing
	Missing bool   `json:"missing,omitempty"` // the backend has no kernel for it
	Lost    bool   `json:"lost,omitempty"`    // the device is of no use any more
}

// maxRows is the largest batch of a test.
const maxRows = 64

// question is a small plan and the batches that are run with it. Together the questions
// make use of every kernel that a model can make use of, in each of its forms: one row,
// a few rows, many rows.
type question struct {
	name    string
	plan    *ops.Plan
	kv      ops.KVType
	batches [][]int // rows of each sequence, batch by batch
	whole   bool    // every row asks for all of its logits
	top     int     // of the best logits that some rows ask for; 0: 5
	bound   float64 // of fast mode, see compare.go; 0: defaultBound

	known sync.Once
	heads []ops.Head // the truth
	err   error
}

// Ask runs the questions on a backend and tells each answer as it comes. It stops at the
// first answer after which the device is of no use.
func Ask(b ops.Backend, modes []ops.Numerics, tell func(Answer)) { put(b, modes, 0, tell) }

// put is Ask with a bound of fast mode that is coarse at least.
func put(b ops.Backend, modes []ops.Numerics, coarse float64, tell func(Answer)) {
	for _, q := range questions() {
		want, err := q.truth()
		for _, mode := range modes {
			a := Answer{Name: q.name, Mode: mode.String()}
			if err != nil {
				a.Fault = "the reference: " + err.Error() // a mistake of ours
				tell(a)
				continue
			}
			a = q.answer(b, mode, want, coarse)
			tell(a)
			if a.Lost {
				return
			}
		}
	}
}

// answer runs the question and compares the outcome with what it must be.
func (q *question) answer(b ops.Backend, mode ops.Numerics, want []ops.Head, coarse float64) Answer {
	a := Answer{Name: q.name, Mode: mode.String()}
	got, err := q.run(b, mode)
	switch {
	case errors.Is(err, ops.ErrUnsupported):
		a.Missing, a.Fault = true, err.Error()
	case err != nil:
		a.Fault, a.Lost = err.Error(), errors.Is(err, ops.ErrDeviceLost)
	default:
		a.Fault = compare(got, want, mode, max(q.bound, coarse))
	}
	return a
}

// options are those of every question.
func (q *question) options(mode ops.Numerics) ops.Options {
	longest := 0
	for s := range q.batches[0] {
		n := 0
		for _, batch := range q.batches {
			n += batch[s]
		}
		longest = max(longest, n)
	}
	return ops.Options{Slots: len(q.batches[0]), Context: longest, MaxRows: maxRows, Numerics: mode, KV: q.kv, Threads: 1, Spare: 1}
}

// truth is what the reference answers, with whole rows of logits beside the best ones. It
// is computed once.
func (q *question) truth() ([]ops.Head, error) {
	q.known.Do(func() {
		if q.heads, q.err = q.run(ref.New(), ops.Exact); q.err != nil {
			return
		}
		whole := question{name: q.name, plan: q.plan, kv: q.kv, batches: q.batches, whole: true}
		var rows []ops.Head
		rows, q.err = whole.run(ref.New(), ops.Exact)
		for i := range rows {
			q.heads[i].Row = rows[i].Row
		}
	})
	return q.heads, q.err
}

// run gives the heads of all rows, batch by batch; the rows of logits are copies. The
// last batch sees the first page of each sequence that it goes on with in a copy.
func (q *question) run(b ops.Backend, mode ops.Numerics) (heads []ops.Head, err error) {
	o := q.options(mode)
	rt, err := b.Load(context.Background(), q.plan, o, nil)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	programs := map[ops.Shape]ops.Program{}
	defer func() {
		for _, p := range programs {
			err = errors.Join(err, p.Close())
		}
	}()
	paging := ops.NewPaging(q.plan, o)
	done := make([]int, o.Slots)
	var unreal error // the first head that is not finite: the rest is run all the same
	for i, rows := range q.batches {
		batch := q.batch(rows, done, paging)
		if i == len(q.batches)-1 {
			if err := copyFirstPages(rt, batch, paging); err != nil {
				return nil, err
			}
		}
		shape := ops.Shape{Rows: bucket(len(batch.Tokens)), Outs: bucket(len(batch.Outs))}
		p := programs[shape]
		if p == nil {
			if p, err = rt.Compile(shape); err != nil {
				return nil, fmt.Errorf("compile for %d rows: %w", shape.Rows, err)
			}
			programs[shape] = p
		}
		var r ops.Result
		if err := p.Run(batch, &r); err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		for _, h := range r.Heads {
			if h.Err != nil && unreal == nil {
				unreal = fmt.Errorf("batch %d: %w", i, h.Err)
			}
			h.Row, h.IDs, h.Logits = append([]float32(nil), h.Row...), append([]int32(nil), h.IDs...), append([]float32(nil), h.Logits...)
			heads = append(heads, h)
		}
	}
	return heads, unreal
}

// copyFirstPages copies the page of the batch's first row's sequence at position 0 to the
// spare page of each group and has the batch look there.
func copyFirstPages(rt ops.Runtime, b *ops.Batch, paging *ops.Paging) error {
	for g, group := range paging.Groups {
		table := paging.Table(b.Pages, g, int(b.Slot[0]))
		if err := rt.CopyPage(g, group.Pages-1, int(table[0])); err != nil {
			return fmt.Errorf("copy a page: %w", err)
		}
		if group.Window <= 0 { // a window may have left page 0 to a later one
			table[0] = int32(group.Pages - 1)
		}
	}
	return nil
}

// batch is the next batch; done counts the positions of each sequence. Every page of a
// sequence is its own. One row in three asks for the best of its logits and for statistics
// instead of all.
func (q *question) batch(rows, done []int, paging *ops.Paging) *ops.Batch {
	b := &ops.Batch{Pages: make([]int32, paging.Entries())}
	for g, group := range paging.Groups {
		own := (group.Pages - 1) / paging.Slots // pages of a sequence; the last one of all is spare
		for s := range rows {
			for i := range paging.Table(b.Pages, g, s) {
				paging.Table(b.Pages, g, s)[i] = int32(s*own + i%own)
			}
		}
	}
	for s, n := range rows {
		for range n {
			b.Tokens = append(b.Tokens, int32((done[s]*31+s*17+5)%q.plan.Vocab))
			b.Pos, b.Slot = append(b.Pos, int32(done[s])), append(b.Slot, int32(s))
			b.Outs = append(b.Outs, int32(len(b.Outs)))
			want := ops.Want{Kind: ops.WantRow}
			if len(b.Outs)%3 == 0 && !q.whole {
				want = ops.Want{Kind: ops.WantTop, K: min(cmp.Or(q.top, 5), q.plan.Vocab), Stats: true}
			}
			b.Want = append(b.Want, want)
			for range q.plan.Adapters {
				b.Scales = append(b.Scales, float32(done[s]%3)/2)
			}
			done[s]++
		}
	}
	q.pictures(b)
	for _, l := range q.plan.Lists {
		list := make([]int32, len(b.Tokens)*l.Per)
		for i := range list {
			list[i] = int32((i*7+3)%(len(b.Tokens)*l.Units+1)) - 1 // -1: zeros
		}
		b.Lists = append(b.Lists, list)
	}
	return b
}

// pictures gives rows what those of pictures have, where the plan heeds it: of every seven
// positions of a sequence the last four are a picture. Its rows have no token where embeddings have
// slices, turn by positions of their own and see to its end or, by the second span, nothing
// before it.
func (q *question) pictures(b *ops.Batch) {
	const period, text = 7, 3
	turned := slices.ContainsFunc(q.plan.Tables, func(t *ops.RoPETable) bool { return t.Axes != nil })
	r := rand.New(rand.NewPCG(uint64(b.Pos[0]), uint64(len(b.Tokens))))
	for i, pos := range b.Pos {
		last := i
		for last+1 < len(b.Slot) && b.Slot[last+1] == b.Slot[i] {
			last++
		}
		inside := pos % period
		begin := pos - inside + text
		if turned {
			line := int32(0)
			if inside > text {
				line = inside - text
			}
			b.Rotary = append(b.Rotary, pos/2, pos/3+line, pos/3+line%2)
		}
		for n := range q.plan.Spans {
			var s ops.Span
			if inside >= text {
				s.Until = min(pos-inside+period, b.Pos[last]+1)
				if n > 0 {
					s.From = begin
				}
			}
			b.Spans = append(b.Spans, s)
		}
		if q.plan.Slices > 0 {
			if inside >= text {
				b.Tokens[i] = -1
			}
			for range q.plan.EmbedWidth() {
				b.Embeds = append(b.Embeds, 4*r.Float32()-2)
			}
		}
	}
}

// bucket is the size of program that an engine runs so many rows with.
func bucket(n int) int {
	for _, b := range []int{1, 8} {
		if n <= b {
			return b
		}
	}
	return maxRows
}
