package ops

import "testing"

func TestChunks(t *testing.T) {
	for _, tt := range []struct{ window, context, want int }{
		{0, 1, 1}, {0, 256, 1}, {0, 257, 2}, {0, 4096, 16},
		{1, 4096, 2}, {256, 4096, 2}, {257, 4096, 3}, {512, 300, 2},
	} {
		if got := (&Attention{Window: tt.window}).Chunks(tt.context); got != tt.want {
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
