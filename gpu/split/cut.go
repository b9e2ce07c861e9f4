package split

import (
	"errors"
	"fmt"
	"slices"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// half is a part of a plan that is a plan itself.
type half struct {
	plan   *ops.Plan
	caches []int // by its caches: the whole plan's
	states []int // by its states: the whole plan's
}

// cut is a plan in two halves: what crosses from the first to the second is one wide
// row for every row of a batch. The first half's logits are these rows; the second half
// takes them as embeddings.
type cut struct {
	at            int // the first operation of the second half
	width         int // of a row that crosses, in floats
	first, second half
}

// crossing is a range of a buffer's columns that the first half writes and the second
// one uses, and where it lies in the row that crosses.
type crossing struct {
	buf      ops.Buf
	from, to int
	at       int
}

// newCut cuts a valid plan before operation k, or tells why that is not possible.
func newCut(p *ops.Plan, k int) (*cut, error) {
	cross, width, err := crossings(p, k)
	if err != nil {
		return nil, err
	}
	c := &cut{at: k, width: width}
	if c.first, err = before(p, k, cross, width); err != nil {
		return nil, err
	}
	if c.second, err = after(p, k, cross, width); err != nil {
		return nil, err
	}
	// A column that only some operation of the second half writes is none that the first
	// could hand over.
	if err := errors.Join(c.first.plan.Validate(), c.second.plan.Validate()); err != nil {
		return nil, fmt.Errorf("split: cut before operation %d: %w", k, err)
	}
	return c, nil
}

// crossings lists what the operations from k on need of those before. It is an error when
// that is more than rows of floats.
func crossings(p *ops.Plan, k int) (cross []crossing, width int, err error) {
	written := make([]bool, len(p.Buffers))
	caches := make([]bool, len(p.Caches))
	for _, op := range p.Ops[:k] {
		for _, v := range op.Writes() {
			written[v.Buf] = true
		}
		eachIndex(op, func(kind string, i int) int {
			if kind == cacheField {
				caches[i] = true
			}
			return i
		})
	}
	used := make([]columns, len(p.Buffers))
	for _, op := range p.Ops[k:] {
		if needsTokens(op) {
			return nil, 0, fmt.Errorf("split: %s after operation %d needs the tokens", op.Name(), k)
		}
		eachIndex(op, func(kind string, i int) int {
			if kind == cacheField && caches[i] {
				err = fmt.Errorf("split: cache %d is used on both sides of operation %d", i, k)
			}
			return i
		})
		for _, v := range op.Reads() {
			used[v.Buf].read(v)
		}
		for _, v := range op.Writes() {
			used[v.Buf].write(v)
		}
	}
	if err != nil {
		return nil, 0, err
	}
	for b := range used {
		for _, r := range used[b].ranges {
			if !written[b] || !r.needed {
				continue
			}
			if buf := p.Buffers[b]; buf.Rows != ops.PerRow || buf.Elem != ops.F32 {
				return nil, 0, fmt.Errorf("split: buffer %q is no row of floats and crosses operation %d", buf.Name, k)
			}
			cross = append(cross, crossing{buf: ops.Buf(b), from: r.from, to: r.to, at: width})
			width += r.to - r.from
		}
	}
	if width == 0 {
		return nil, 0, fmt.Errorf("split: nothing crosses operation %d", k)
	}
	return cross, width, nil
}

// columns are the columns of a buffer that the second half uses, in ranges: views that
// overlap are in one, so that each view stays in one piece.
type columns struct {
	ranges  []columnRange
	written []ops.View // by the second half until now
}

type columnRange struct {
	from, to int
	needed   bool // read before the second half has written it
}

func (c *columns) read(v ops.View) {
	own := slices.ContainsFunc(c.written, func(w ops.View) bool { return w.Off <= v.Off && v.Off+v.Width <= w.Off+w.Width })
	c.add(columnRange{v.Off, v.Off + v.Width, !own})
}

func (c *columns) write(v ops.View) {
	c.written = append(c.written, v)
	c.add(columnRange{from: v.Off, to: v.Off + v.Width})
}

// add joins a range with those that it overlaps.
func (c *columns) add(r columnRange) {
	c.ranges = slices.DeleteFunc(c.ranges, func(o columnRange) bool {
		if o.to <= r.from || r.to <= o.from {
			return false
		}
		r = columnRange{min(r.from, o.from), max(r.to, o.to), r.needed || o.needed}
		return true
	})
	c.ranges = append(c.ranges, r)
}

// needsTokens tells whether an operation looks at token ids, which the second half does
// not have: its batches name none.
func needsTokens(op ops.Op) bool {
	switch o := op.(type) {
	case *ops.Embed:
		return !o.ByPosition
	case *ops.Deepstack:
		return true // and its slices of their embeddings
	case *ops.LowRank:
		return o.ByToken
	}
	return false
}

// before is the half of the operations before k. Rows copies what crosses, bit by bit,
// side by side into the columns of its logits.
func before(p *ops.Plan, k int, cross []crossing, width int) (half, error) {
	h, add := newHalf(p)
	q := h.plan
	q.Vocab, q.Tokens, q.Slices = width, p.TokenIDs(), p.Slices
	for _, op := range p.Ops[:k] {
		if err := add(op, func(v ops.View) ops.View { return v }); err != nil {
			return *h, err
		}
	}
	q.Buffers = append(q.Buffers, ops.Buffer{Name: "crossing", Width: width, Rows: ops.PerOut})
	q.Logits = ops.View{Buf: ops.Buf(len(q.Buffers) - 1), Width: width}
	for _, c := range cross {
		n := c.to - c.from
		q.Ops = append(q.Ops, &ops.Rows{In: ops.View{Buf: c.buf, Off: c.from, Width: n}, Out: q.Logits.Cols(c.at, n)})
	}
	return *h, nil
}

// after is the half of the operations from k on. Its embeddings are the rows that cross,
// and views of what crossed become views of them; its table is never looked at.
func after(p *ops.Plan, k int, cross []crossing, width int) (half, error) {
	h, add := newHalf(p)
	q := h.plan
	q.Vocab, q.Tokens, q.Embed, q.Logits = p.Vocab, ops.NoTokens, width, p.Logits
	q.Buffers = append(q.Buffers, ops.Buffer{Name: "crossing", Width: width})
	in := ops.View{Buf: ops.Buf(len(q.Buffers) - 1), Width: width}
	table := &ops.Weight{Name: "crossing", Type: tensor.F32, Cols: width, Rows: 1, Experts: 1, Data: make([]byte, 4*width)}
	q.Weights = append(q.Weights, table)
	q.Ops = append(q.Ops, &ops.Embed{Table: table, Scale: 1, Out: in})
	for _, op := range p.Ops[k:] {
		err := add(op, func(v ops.View) ops.View {
			for _, c := range cross {
				if c.buf == v.Buf && c.from <= v.Off && v.Off < c.to {
					return in.Cols(c.at+v.Off-c.from, v.Width)
				}
			}
			return v
		})
		if err != nil {
			return *h, err
		}
	}
	return *h, nil
}

// newHalf is an empty half and what adds an operation to it with what it refers to: the
// views that view gives, and weights, caches, states and tables of its own.
func newHalf(p *ops.Plan) (*half, func(op ops.Op, view func(ops.View) ops.View) error) {
	q := &ops.Plan{Name: p.Name, Embed: p.Embed, Context: p.Context, Spans: p.Spans, Adapters: p.Adapters, Buffers: slices.Clone(p.Buffers)}
	h := &half{plan: q}
	var tables []int
	own := func(list *[]int, i int) int {
		if at := slices.Index(*list, i); at >= 0 {
			return at
		}
		*list = append(*list, i)
		return len(*list) - 1
	}
	return h, func(op ops.Op, view func(ops.View) ops.View) error {
		c, err := clone(op, view)
		if err != nil {
			return err
		}
		eachIndex(c, func(kind string, i int) int {
			switch kind {
			case cacheField:
				if i = own(&h.caches, i); i == len(q.Caches) {
					q.Caches = append(q.Caches, p.Caches[h.caches[i]])
				}
			case stateField:
				if i = own(&h.states, i); i == len(q.States) {
					q.States = append(q.States, p.States[h.states[i]])
				}
			case tableField:
				if i = own(&tables, i); i == len(q.Tables) {
					q.Tables = append(q.Tables, p.Tables[tables[i]])
				}
			}
			return i
		})
		for _, w := range ops.WeightsOf(c) {
			if !slices.Contains(q.Weights, w) {
				q.Weights = append(q.Weights, w)
			}
		}
		q.Ops = append(q.Ops, c)
		return nil
	}
}
