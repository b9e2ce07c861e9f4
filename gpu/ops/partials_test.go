package ops

import "testing"

func TestChunks(t *testing.T) {
	for _, tt := range []struct{ window, context, want int }{
		{0, 1, 1}, {0, 256, 1}, {0, 257, 2}, {0, 4096, 16},
		{1, 4096, 2}, {256, 4096, 2}, {257, 4096, 3}, {512, 300, 2},
	} {
		if got := (&Attention{Window: tt.window}).Chunks(Options{Context: tt.context}); got != tt.want {
			t.Errorf("window %d, context %d: %d chunks, want %d", tt.window, tt.context, got, tt.want)
		}
		// No row can see more.
		for pos := range tt.context {
			from := 0
			if tt.window > 0 {
				from = max(0, pos-tt.window+1)
			}
			if n := pos/KVChunk - from/KVChunk + 1; n > tt.want {
				t.Fatalf("window %d: position %d sees %d chunks, more than %d", tt.window, pos, n, tt.want)
			}
		}
	}
}

// TestChunksOfSpans: a row with a span sees its window and the rest of the batch.
func TestChunksOfSpans(t *testing.T) {
	a, o := Attention{Window: 100, Span: 1}, Options{Context: 4096, MaxRows: 300}
	if got, want := a.Chunks(o), 3; got != want {
		t.Errorf("%d chunks, want %d", got, want)
	}
	for pos := range 700 {
		lo, hi := a.Sees(pos, Span{Until: int32(pos + o.MaxRows)})
		if n := (hi-1)/KVChunk - lo/KVChunk + 1; n > 3 {
			t.Fatalf("position %d sees %d chunks", pos, n)
		}
	}
}

func TestSees(t *testing.T) {
	for _, tt := range []struct {
		a      Attention
		pos    int
		span   Span
		lo, hi int
	}{
		{Attention{}, 5, Span{}, 0, 6},
		{Attention{}, 5, Span{Until: 3}, 0, 6},
		{Attention{}, 5, Span{Until: 9}, 0, 9},
		{Attention{}, 5, Span{From: 4, Until: 9}, 4, 9},
		{Attention{Window: 3}, 5, Span{Until: 9}, 3, 9},
		{Attention{Window: 3}, 1, Span{}, 0, 2},
		{Attention{Window: 3, Chunked: true}, 5, Span{Until: 7}, 3, 7},
		{Attention{Window: 3}, 5, Span{From: 4}, 4, 6},
	} {
		if lo, hi := tt.a.Sees(tt.pos, tt.span); lo != tt.lo || hi != tt.hi {
			t.Errorf("%+v, position %d, %v: got [%d, %d), want [%d, %d)", tt.a, tt.pos, tt.span, lo, hi, tt.lo, tt.hi)
		}
	}
}

func TestPartialBytes(t *testing.T) {
	p := &Plan{
		Caches: []Cache{{ValueDim: 64}, {ValueDim: 512}},
		Ops:    []Op{&Attention{Cache: 0}, &Attention{Cache: 1, Window: 10}, &Softcap{}},
	}
	for _, tt := range []struct {
		o    Options
		want int64
	}{
		{Options{Context: 4096, Threads: 1, Numerics: Exact}, 80 * 16 * 264},
		{Options{Context: 4096, Threads: 3, Numerics: Fast}, 3 * 80 * 16 * 72},
		{Options{Context: 256, Threads: 1, Numerics: Exact}, 80 * 520},
	} {
		if got := p.PartialBytes(tt.o); got != tt.want {
			t.Errorf("%+v: %d bytes, want %d", tt.o, got, tt.want)
		}
	}
	if got := (&Plan{}).PartialBytes(Options{Context: 4096}); got != 0 {
		t.Errorf("without attention: %d bytes", got)
	}
}
