package compute

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"ganglion/gpu/ops"
)

// A batch of two sequences, read back section by section.
func TestBatchSections(t *testing.T) {
	b := ops.NewBuilder("batch")
	b.Cache(ops.Cache{Name: "all", KVHeads: 1, KeyDim: 2, ValueDim: 2})
	b.Cache(ops.Cache{Name: "near", KVHeads: 1, KeyDim: 2, ValueDim: 2, Window: 8})
	x := b.Buffer("x", 4)
	scale := &ops.PosScale{Floor: 2, Scale: 0.5, In: x, Out: x}
	b.Add(&ops.PosScale{Floor: 4, Scale: 1, In: x, Out: x})
	b.Add(scale)
	b.Plan.Adapters = 2
	g := ops.NewPaging(b.Plan, ops.Options{Slots: 3, Context: 512, MaxRows: 8})
	l := newBatchLayout(b.Plan, g, ops.Shape{Rows: 6, Outs: 3}, 1)
	batch := &ops.Batch{
		Tokens: []int32{7, -1, 9}, Pos: []int32{70, 71, 0}, Slot: []int32{2, 2, 0},
		Outs: []int32{1, 2}, Want: []ops.Want{{Kind: ops.WantTop, K: 5}, {Kind: ops.WantTop, K: topMost + 1}},
		Scales: []float32{0, 0, 0, 2, 0, 3},
		Pages:  make([]int32, g.Entries()),
	}
	for i := range batch.Pages {
		batch.Pages[i] = int32(100 + i)
	}
	buf := l.fill(batch)
	words := func(at uint32, n int) []int32 {
		var w []int32
		for i := range n {
			w = append(w, int32(binary.LittleEndian.Uint32(buf[4*(int(at)+i):])))
		}
		return w
	}
	float := func(at uint32) float32 { return math.Float32frombits(uint32(words(at, 1)[0])) }
	for _, s := range []struct {
		name string
		at   uint32
		want []int32
	}{
		{"head", 0, []int32{3, 2, 2, 1}},
		{"tokens", l.row.tokens, batch.Tokens}, {"positions", l.row.pos, batch.Pos}, {"slots", l.row.slot, batch.Slot},
		{"sequences of rows", l.row.seq, []int32{0, 0, 1}},
		{"tokens of outputs", l.out.tokens, []int32{-1, 9}}, {"positions of outputs", l.out.pos, []int32{71, 0}},
		{"sequences of outputs", l.out.seq, []int32{0, 1}}, {"slots of outputs", l.out.slot, []int32{2, 0}},
		{"rows of outputs", l.outs, batch.Outs}, {"wants", l.wants, []int32{5, 0}},
		{"sequences", l.seqs, []int32{2, 0, 2, 70, 0, 2, 1, 0}},
		{"active adapters", l.active, []int32{0, 1}},
		{"pages of the first group", l.pagesOf(0), []int32{116, 117, 118, 119, 100, 101, 102, 103}},
		{"pages of the second group", l.pagesOf(1), []int32{140, 141, 142, 143, 124, 125, 126, 127}},
	} {
		if got := words(s.at, len(s.want)); !slices.Equal(got, s.want) {
			t.Errorf("%s: %v, want %v", s.name, got, s.want)
		}
	}
	if got, want := float(l.factorsOf(scale, l.row)+1), scale.At(71); got != want {
		t.Errorf("factor of row 1: %v, want %v", got, want)
	}
	if got, want := float(l.factorsOf(scale, l.out)), scale.At(71); got != want {
		t.Errorf("factor of output 0: %v, want %v", got, want)
	}
	if got := float(l.row.scales + uint32(6+1)); got != 2 {
		t.Errorf("strength of adapter 1 in row 1: %v, want 2", got)
	}
}
