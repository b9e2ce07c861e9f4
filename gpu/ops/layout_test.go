package ops

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// simulate executes a plan on the two arenas of a layout as far as ownership goes:
// each element remembers which column of which buffer was written last. A read that
// finds another owner means that two live buffers overlap.
func simulate(p *Plan, l Layout) error {
	type owner struct {
		buf Buf
		col int
	}
	arenas := [2][]owner{make([]owner, l.RowWidth), make([]owner, l.OutWidth)}
	for _, a := range arenas {
		for i := range a {
			a[i] = owner{-1, 0}
		}
	}
	at := func(v View) ([]owner, error) {
		a, off := arenas[p.Buffers[v.Buf].Rows], l.Offset[v.Buf]+v.Off
		if off < 0 || off+v.Width > len(a) {
			return nil, fmt.Errorf("columns [%d,%d) of an arena of %d", off, off+v.Width, len(a))
		}
		return a[off : off+v.Width], nil
	}
	read := func(v View) error {
		have, err := at(v)
		for i, o := range have {
			if want := (owner{v.Buf, v.Off + i}); o != want {
				return fmt.Errorf("reads column %d of buffer %d and finds column %d of buffer %d", want.col, want.buf, o.col, o.buf)
			}
		}
		return err
	}
	for n, op := range p.Ops {
		for _, v := range op.Reads() {
			if err := read(v); err != nil {
				return fmt.Errorf("operation %d: %w", n, err)
			}
		}
		for _, v := range op.Writes() {
			have, err := at(v)
			if err != nil {
				return fmt.Errorf("operation %d: %w", n, err)
			}
			for i := range have {
				have[i] = owner{v.Buf, v.Off + i}
			}
			// An output on top of an input that is another buffer would be read by
			// some invocations after others wrote it.
			for _, in := range op.Reads() {
				if in.Buf == v.Buf {
					continue
				}
				if err := read(in); err != nil {
					return fmt.Errorf("operation %d: output on an input: %w", n, err)
				}
			}
		}
	}
	return read(p.Logits)
}

// randomPlan draws a valid plan: operations over views of earlier buffers, in place
// or into new ones, some buffers written in two pieces, per row and then per output.
func randomPlan(t *rapid.T) *Plan {
	b := NewBuilder("random")
	var written []View
	add := func(v View) View { written = append(written, v); return v }
	width := func() int { return rapid.IntRange(1, 9).Draw(t, "width") }
	pick := func(rows RowSet) View {
		var vs []View
		for _, v := range written {
			if b.Plan.Buffers[v.Buf].Rows == rows {
				vs = append(vs, v)
			}
		}
		return rapid.SampledFrom(vs).Draw(t, "view")
	}
	part := func(v View) View {
		off := rapid.IntRange(0, v.Width-1).Draw(t, "off")
		return v.Cols(off, rapid.IntRange(1, v.Width-off).Draw(t, "part"))
	}
	step := func(rows RowSet) {
		in := part(pick(rows))
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0: // in place
			b.Add(&Scale{Factor: 2, In: in, Out: in})
		case 1:
			out := b.Buffer("scale", in.Width)
			b.Add(&Scale{Factor: 2, In: in, Out: out})
			add(out)
		case 2: // in two pieces
			out := b.Buffer("pieces", in.Width+1)
			b.Add(&Scale{Factor: 2, In: in, Out: out.Cols(0, in.Width)})
			b.Add(&Scale{Factor: 2, In: in.Cols(0, 1), Out: out.Cols(in.Width, 1)})
			add(out)
		case 3:
			other := pick(rows)
			n := min(in.Width, other.Width)
			add(b.Sum("sum", in.Cols(0, n), other.Cols(0, n)))
		case 4:
			w := b.Weight(vectorOf(in.Width * width()))
			w.Cols, w.Rows = in.Width, w.Cols/in.Width
			add(b.MatMul("matmul", w, nil, in))
		}
	}
	table := vectorOf(width())
	b.Plan.Vocab, b.Plan.Embed = 1, table.Cols
	add(b.Embed(b.Weight(table), 1))
	for range rapid.IntRange(0, 12).Draw(t, "before") {
		step(PerRow)
	}
	add(b.Outputs(part(pick(PerRow))))
	for range rapid.IntRange(0, 12).Draw(t, "after") {
		step(PerOut)
	}
	b.Plan.Logits = part(pick(PerOut)).Cols(0, 1)
	return b.Plan
}

func TestLayoutNeverOverlapsLiveBuffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlan(t)
		if err := p.Validate(); err != nil {
			t.Fatalf("the generator made an invalid plan: %v", err)
		}
		l := NewLayout(p)
		if err := simulate(p, l); err != nil {
			t.Fatalf("%v in %+v", err, l)
		}
		// No arena is larger than all its buffers side by side.
		var all [2]int
		for _, b := range p.Buffers {
			all[b.Rows] += b.Width
		}
		if l.RowWidth > all[PerRow] || l.OutWidth > all[PerOut] {
			t.Fatalf("arenas of %d and %d for buffers of %v", l.RowWidth, l.OutWidth, all)
		}
	})
}

// TestLayoutSimulationFinds shows that the simulation sees an overlap, an arena that
// is too small, and an output on top of an input.
func TestLayoutSimulationFinds(t *testing.T) {
	p := smallPlan().Plan
	good := NewLayout(p)
	if err := simulate(p, good); err != nil {
		t.Fatalf("good layout: %v", err)
	}
	for name, spoil := range map[string]func(*Layout){
		"all at 0":        func(l *Layout) { clear(l.Offset) },
		"arena too small": func(l *Layout) { l.RowWidth-- },
		"outside":         func(l *Layout) { l.Offset[0] = -1 },
	} {
		l := good
		l.Offset = slices.Clone(good.Offset)
		spoil(&l)
		if simulate(p, l) == nil {
			t.Errorf("%s: found nothing", name)
		}
	}
}

// TestLayoutShares wants buffers of one layer to reuse those of the layer before.
func TestLayoutShares(t *testing.T) {
	b := NewBuilder("deep")
	table := vectorOf(10)
	x := b.Embed(b.Weight(table), 1)
	b.Plan.Vocab, b.Plan.Embed = 1, 10
	for range 30 {
		x = b.Sum("x", x, b.RMSNorm("n", nil, 1e-6, 0, x))
	}
	b.Plan.Logits = b.Outputs(x).Cols(0, 1)
	if err := b.Plan.Validate(); err != nil {
		t.Fatal(err)
	}
	if l := NewLayout(b.Plan); l.RowWidth != 30 || l.OutWidth != 10 {
		t.Errorf("61 buffers of 10 columns take %d and %d, want 30 and 10", l.RowWidth, l.OutWidth)
	}
}
