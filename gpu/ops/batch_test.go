package ops

import (
	"math"
	"strings"
	"testing"
)

func TestBatchCheck(t *testing.T) {
	p := &Plan{Vocab: 10, Embed: 1, Slices: 2, Spans: 2, Adapters: 2}
	o := Options{Slots: 3, Context: 8, MaxRows: 6, Threads: 1}
	good := func() *Batch {
		return &Batch{
			Tokens: []int32{1, 2, -1, 9, 0}, Pos: []int32{0, 1, 2, 7, 4}, Slot: []int32{1, 1, 1, 0, 2},
			Outs: []int32{2, 4}, Want: []Want{{Kind: WantRow}, {Kind: WantTop, K: 10}}, Embeds: make([]float32, 9),
		}
	}
	tests := []struct {
		name  string
		spoil func(b *Batch)
		says  string // "" = accepted
	}{
		{"good", func(*Batch) {}, ""},
		{"no outputs", func(b *Batch) { b.Outs, b.Want = nil, nil }, ""},
		{"empty", func(b *Batch) { *b = Batch{} }, "0 tokens"},
		{"too many rows", func(b *Batch) { b.Tokens = make([]int32, 7) }, "at most 6"},
		{"positions missing", func(b *Batch) { b.Pos = b.Pos[1:] }, "4 positions"},
		{"slots missing", func(b *Batch) { b.Slot = b.Slot[1:] }, "4 slots"},
		{"wants missing", func(b *Batch) { b.Want = b.Want[1:] }, "1 wants"},
		{"token too large", func(b *Batch) { b.Tokens[0] = 10 }, "row 0: token 10"},
		{"token too small", func(b *Batch) { b.Tokens[0] = -2 }, "row 0: token -2"},
		{"embedding missing", func(b *Batch) { b.Embeds = b.Embeds[1:] }, "row 2: token -1"},
		{"slot too large", func(b *Batch) { b.Slot[4] = 3 }, "slot 3 of 3"},
		{"slot negative", func(b *Batch) { b.Slot[4] = -1 }, "slot -1"},
		{"position too large", func(b *Batch) { b.Pos[3] = 8 }, "position 8"},
		{"position negative", func(b *Batch) { b.Pos[3] = -1 }, "position -1"},
		{"gap", func(b *Batch) { b.Pos[2] = 3 }, "position 3 after 1"},
		{"backwards", func(b *Batch) { b.Pos[1] = 0 }, "position 0 after 0"},
		{"slot comes back", func(b *Batch) { b.Slot[4] = 1 }, "slot 1 was used by row 0"},
		{"output too large", func(b *Batch) { b.Outs[1] = 5 }, "row 5 of 5"},
		{"output negative", func(b *Batch) { b.Outs[0] = -1 }, "row -1"},
		{"output twice", func(b *Batch) { b.Outs[1] = 2 }, "row 2"},
		{"best none", func(b *Batch) { b.Want[1].K = 0 }, "best 0"},
		{"best too many", func(b *Batch) { b.Want[1].K = 11 }, "best 11"},
		{"scales", func(b *Batch) { b.Scales = make([]float32, 10) }, ""},
		{"scale missing", func(b *Batch) { b.Scales = make([]float32, 9) }, "9 scales for 5 rows and 2 adapters"},
		{"scale infinite", func(b *Batch) { b.Scales = make([]float32, 10); b.Scales[7] = float32(math.Inf(1)) }, "row 3: scale of adapter 1"},
		{"scale NaN", func(b *Batch) { b.Scales = make([]float32, 10); b.Scales[0] = float32(math.NaN()) }, "row 0: scale of adapter 0"},
		{"rotary", func(b *Batch) { b.Rotary = make([]int32, 15) }, ""},
		{"rotary missing", func(b *Batch) { b.Rotary = make([]int32, 14) }, "14 rotary positions for 5 rows"},
		{"rotary too large", func(b *Batch) { b.Rotary = make([]int32, 15); b.Rotary[7] = 8 }, "row 2: rotary position 8"},
		{"rotary negative", func(b *Batch) { b.Rotary = make([]int32, 15); b.Rotary[3] = -1 }, "row 1: rotary position -1"},
		{"spans", func(b *Batch) {
			b.Spans = make([]Span, 10)
			b.Spans[1], b.Spans[5], b.Spans[6] = Span{0, 3}, Span{2, 3}, Span{7, 8}
		}, ""},
		{"span missing", func(b *Batch) { b.Spans = make([]Span, 9) }, "9 spans for 5 rows of 2"},
		{"span beyond the batch", func(b *Batch) { b.Spans = make([]Span, 10); b.Spans[1].Until = 4 }, "row 0: position 0 looks at [0, 4), the sequence ends at 3"},
		{"span of the next sequence", func(b *Batch) { b.Spans = make([]Span, 10); b.Spans[7].Until = 9 }, "row 3"},
		{"span from later", func(b *Batch) { b.Spans = make([]Span, 10); b.Spans[3] = Span{2, 3} }, "row 1: position 1 looks at [2, 3)"},
		{"span from before", func(b *Batch) { b.Spans = make([]Span, 10); b.Spans[3].From = -1 }, "row 1"},
		{"span until before", func(b *Batch) { b.Spans = make([]Span, 10); b.Spans[3].Until = -1 }, "row 1"},
		{"unknown kind", func(b *Batch) { b.Want[0].Kind = WantRow + 1 }, "kind 3"},
	}
	for _, tt := range tests {
		b := good()
		tt.spoil(b)
		err := b.Check(p, o)
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.says)
		}
	}
}

func TestCutAt(t *testing.T) {
	// Two rows of one sequence, then six of another at 10: a picture from 11 to 13.
	b := &Batch{Tokens: make([]int32, 8), Slot: []int32{0, 0, 1, 1, 1, 1, 1, 1}, Pos: []int32{4, 5, 10, 11, 12, 13, 14, 15}}
	for _, spans := range []bool{false, true} {
		if spans {
			b.Spans = make([]Span, 16)
			b.Spans[2*3+1], b.Spans[2*4], b.Spans[2*5] = Span{Until: 14}, Span{Until: 14}, Span{Until: 14}
		}
		for _, tt := range []struct{ from, to, want int }{
			{0, 8, 8}, {0, 7, 7}, {0, 6, 6}, {0, 5, 3}, {0, 4, 3}, {0, 3, 3}, {0, 2, 2}, {0, 1, 1}, {3, 5, 3}, {3, 6, 6}, {6, 7, 7},
		} {
			want := tt.want
			if !spans {
				want = tt.to
			}
			if got := b.CutAt(tt.from, tt.to); got != want {
				t.Errorf("spans %v, rows from %d to %d: cut at %d, want %d", spans, tt.from, tt.to, got, want)
			}
		}
	}
}

func TestOptionsCheck(t *testing.T) {
	good := Options{Slots: 1, Context: 1, MaxRows: 1, Threads: 1, Numerics: Exact, KV: KVF32}
	if err := good.Check(); err != nil {
		t.Errorf("good options: %v", err)
	}
	for name, spoil := range map[string]func(*Options){
		"slots":    func(o *Options) { o.Slots = 0 },
		"context":  func(o *Options) { o.Context = -1 },
		"rows":     func(o *Options) { o.MaxRows = 0 },
		"threads":  func(o *Options) { o.Threads = 0 },
		"numerics": func(o *Options) { o.Numerics = 2 },
		"spare":    func(o *Options) { o.Spare = -1 },
		"kv":       func(o *Options) { o.KV = kvTypes },
	} {
		o := good
		spoil(&o)
		if o.Check() == nil {
			t.Errorf("bad %s: no error", name)
		}
	}
}

// TestBatchCheckAllocatesNothing, for it stands in the decode loop.
func TestBatchCheckAllocatesNothing(t *testing.T) {
	p, o := &Plan{Vocab: 10}, Options{Slots: 2, Context: 8, MaxRows: 6, Threads: 1}
	b := &Batch{Tokens: []int32{1, 2}, Pos: []int32{0, 1}, Slot: []int32{1, 0}, Outs: []int32{1}, Want: make([]Want, 1)}
	g := NewPaging(p, o)
	if n := testing.AllocsPerRun(10, func() {
		if err := b.CheckRun(p, o, g, Shape{2, 1}); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBatchCheckRun(t *testing.T) {
	table := &Weight{Name: "positions", Rows: 3}
	o := Options{Slots: 2, Context: 8, MaxRows: 6, Threads: 1}
	for _, tt := range []struct {
		name, says string
		shape      Shape
		spoil      func(b *Batch, p *Plan)
	}{
		{"good", "", Shape{2, 1}, func(*Batch, *Plan) {}},
		{"the batch's own rules", "token 10", Shape{2, 1}, func(b *Batch, _ *Plan) { b.Tokens[0] = 10 }},
		{"pages", "entries of page tables", Shape{2, 1}, func(b *Batch, _ *Plan) { b.Pages = []int32{0} }},
		{"rows", "2 rows and 1 outputs in a program for 1 and 1", Shape{1, 1}, func(*Batch, *Plan) {}},
		{"outputs", "2 rows and 1 outputs in a program for 2 and 0", Shape{2, 0}, func(*Batch, *Plan) {}},
		{"a table of positions", `row 1: position 3 outside table "positions" of 3 rows`, Shape{2, 1},
			func(b *Batch, p *Plan) {
				b.Pos[1], p.Ops = 3, []Op{&Rows{}, &Embed{Table: table}, &Embed{Table: table, ByPosition: true}}
			}},
	} {
		p := &Plan{Vocab: 10}
		b := &Batch{Tokens: []int32{1, 2}, Pos: []int32{0, 1}, Slot: []int32{1, 0}, Outs: []int32{1}, Want: make([]Want, 1)}
		tt.spoil(b, p)
		err := b.CheckRun(p, o, NewPaging(p, o), tt.shape)
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.says)
		}
	}
}
