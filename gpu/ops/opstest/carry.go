package opstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// carriedCases are what a sequence leaves behind in pages and states: heads of odd widths
// and of a window, and every kind of recurrent state.
func carriedCases() []testCase {
	return []testCase{
		attentionCase(attentionShape{heads: 3, kvHeads: 3, keyDim: 37, valueDim: 21, seqs: []int{1}}),
		attentionCase(attentionShape{heads: 4, kvHeads: 2, keyDim: 64, valueDim: 64, window: 5, cacheWindow: 5, seqs: []int{1}}),
		shortConvCase(3, 64, ops.Identity, false), mamba1Case(16, 24), mamba2Case(4, 2, 8, 16), gatedDeltaCase(2, 4, 16),
	}
}

const (
	carriedRows  = ops.PageSize + 11
	carriedFirst = ops.PageSize + 6 // rows that run before the sequence is carried
)

// carriedPlan has all of carriedCases side by side, and their inputs by position.
func carriedPlan() (p *ops.Plan, embeds []float32) {
	cases := carriedCases()
	width, out := 0, 0
	for _, c := range cases {
		for _, in := range c.ins {
			width += in.width
		}
		out += c.out
	}
	p = Plan("carried", width, func(b *ops.Builder, row ops.View) ops.View {
		all, in, to := b.Buffer("out", out), 0, 0
		for _, c := range cases {
			var views []ops.View
			for _, i := range c.ins {
				views = append(views, row.Cols(in, i.width))
				in += i.width
			}
			c.build(b, views, all.Cols(to, c.out))
			to += c.out
		}
		return all
	})
	r := random("carried")
	for range carriedRows {
		for _, c := range cases {
			for _, in := range c.ins {
				embeds = append(embeds, vector(r, in.width, in.draw)...)
			}
		}
	}
	return p, embeds
}

// carrier is one end of a journey: a loaded plan with pages for the sequence of slot 1.
type carrier struct {
	rt    ops.Runtime
	pages ops.Carrier
	pager *pager
}

func newCarrier(b ops.Backend, p *ops.Plan, o ops.Options) (*carrier, error) {
	rt, err := b.Load(context.Background(), p, o, nil)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	pages, ok := rt.(ops.Carrier)
	if !ok {
		rt.Close()
		return nil, fmt.Errorf("the runtime of %s carries no pages: %w", b.Name(), ops.ErrUnsupported)
	}
	return &carrier{rt, pages, newPager(p, o)}, nil
}

func (c *carrier) run(p *ops.Plan, embeds []float32, from, to int) ([][]float32, error) {
	prog, err := c.rt.Compile(ops.Shape{Rows: to - from, Outs: to - from})
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	defer prog.Close()
	return runRows(prog, c.batch(p, embeds, from, to))
}

func (c *carrier) batch(p *ops.Plan, embeds []float32, from, to int) *ops.Batch {
	var b ops.Batch
	for pos := from; pos < to; pos++ {
		appendRow(&b, -1, pos, 1)
	}
	b.Embeds = embeds[from*p.Embed : to*p.Embed]
	c.pager.place(&b)
	return &b
}

// take carries slot 1 over from another runtime, whose pages have other numbers, and
// looks at it again: what was written is what is read.
func (c *carrier) take(from *carrier) error {
	for g := range c.pager.paging.Groups {
		theirs, own := from.pager.paging.Table(from.pager.tables, g, 1), c.pager.paging.Table(c.pager.tables, g, 1)
		for i, page := range theirs {
			if page < 0 || own[i] < 0 {
				continue
			}
			data, err := from.pages.ReadPage(g, int(page), nil)
			if err != nil {
				return fmt.Errorf("read page: %w", err)
			}
			if err := c.pages.WritePage(g, int(own[i]), data); err != nil {
				return fmt.Errorf("write page: %w", err)
			}
			again, err := c.pages.ReadPage(g, int(own[i]), make([]byte, 3))
			if err != nil || !bytes.Equal(again, data) {
				return fmt.Errorf("page %d of group %d is not what was written, or %v", i, g, err)
			}
		}
	}
	state, err := from.rt.SaveState(1, nil)
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return c.rt.LoadState(1, state)
}

// checkCarry runs the beginning of a sequence on one backend and the rest on another, the
// tested one being either: the bits are those of a sequence that stayed.
func checkCarry(b ops.Backend) error {
	p, embeds := carriedPlan()
	for _, kv := range []ops.KVType{ops.KVF16, ops.KVF32, ops.KVQ8} {
		o := ops.Options{Slots: 2, Context: 2 * ops.PageSize, MaxRows: carriedRows, Threads: 2, KV: kv, Numerics: ops.Exact}
		if !b.Caps().Exact {
			o.Numerics = ops.Fast
		}
		stayed, err := newCarrier(ref.New(), p, o)
		if err != nil {
			return err
		}
		want, err := stayed.run(p, embeds, 0, carriedRows)
		if err = errors.Join(err, stayed.rt.Close()); err != nil {
			return err
		}
		for _, way := range [][2]ops.Backend{{ref.New(), b}, {b, ref.New()}} {
			if err := checkJourney(way, p, o, embeds, want); err != nil {
				return fmt.Errorf("kv %s, from %s to %s: %w", kv, way[0].Name(), way[1].Name(), err)
			}
		}
	}
	return nil
}

func checkJourney(way [2]ops.Backend, p *ops.Plan, o ops.Options, embeds []float32, want [][]float32) error {
	var ends [2]*carrier
	for i, b := range way {
		end, err := newCarrier(b, p, o)
		if err != nil {
			return err
		}
		defer end.rt.Close()
		ends[i] = end
	}
	got, err := ends[0].run(p, embeds, 0, carriedFirst)
	if err != nil {
		return err
	}
	other := ops.Batch{Tokens: []int32{-1}, Pos: []int32{0}, Slot: []int32{0}}
	ends[1].pager.place(&other) // so that the sequence lies on other pages here
	ends[1].batch(p, embeds, carriedFirst, carriedRows)
	if err := ends[1].take(ends[0]); err != nil {
		return err
	}
	rest, err := ends[1].run(p, embeds, carriedFirst, carriedRows)
	if err != nil {
		return err
	}
	if o.Numerics == ops.Exact {
		if err := sameBits(outputs{append(got, rest...)}, outputs{want}); err != nil {
			return err
		}
	}
	return checkCarryErrors(ends)
}

// checkCarryErrors asks for pages that are not there.
func checkCarryErrors(ends [2]*carrier) error {
	for _, e := range ends {
		data, err := e.pages.ReadPage(0, 0, nil)
		if err != nil {
			return err
		}
		for _, bad := range [][2]int{{-1, 0}, {2, 0}, {0, -1}, {0, 99}} {
			if _, err := e.pages.ReadPage(bad[0], bad[1], nil); err == nil {
				return fmt.Errorf("reading page %d of group %d gave no error", bad[1], bad[0])
			}
			if e.pages.WritePage(bad[0], bad[1], data) == nil {
				return fmt.Errorf("writing page %d of group %d gave no error", bad[1], bad[0])
			}
		}
		if e.pages.WritePage(0, 0, data[1:]) == nil {
			return errors.New("writing a part of a page gave no error")
		}
	}
	return nil
}
