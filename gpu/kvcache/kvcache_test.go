package kvcache

import (
	"testing"

	"ganglion/gpu/ops"
)

func fill(t *testing.T, s *Slots, id int, tokens ...int32) {
	t.Helper()
	for _, tok := range tokens {
		if _, err := s.Append(id, tok); err != nil {
			t.Fatal(err)
		}
	}
}

func seq(from, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(from + i)
	}
	return out
}

func book(window int, states int) *Slots {
	p := &ops.Plan{Caches: []ops.Cache{{KVHeads: 1, KeyDim: 2, ValueDim: 2, Window: window}}}
	for range states {
		p.States = append(p.States, ops.State{Floats: 1})
	}
	return New(p, ops.Options{Slots: 2, Context: 100, MaxRows: 8})
}

func TestAcquire(t *testing.T) {
	tests := []struct {
		name           string
		window, states int
		held           []int32
		prompt         []int32
		cached         int
	}{
		{"cold", 0, 0, nil, seq(1, 5), 0},
		{"same prompt runs its last token", 0, 0, seq(1, 5), seq(1, 5), 4},
		{"longer prompt keeps all", 0, 0, seq(1, 5), seq(1, 9), 5},
		{"diverging prompt keeps the common part", 0, 0, seq(1, 9), append(seq(1, 4), 77, 78), 4},
		{"window: nothing overwritten yet", 10, 0, seq(1, 18), append(seq(1, 4), 77, 78), 4},
		{"window: overwritten cells are not reused", 10, 0, seq(1, 40), append(seq(1, 4), 77, 78), 0},
		{"window: recent enough to be whole", 10, 0, seq(1, 40), append(seq(1, 35), 77, 78), 35},
		{"window: the first overwritten position", 10, 0, seq(1, 40), append(seq(1, 30), 77, 78), 0},
		{"state cannot be cut back", 0, 1, seq(1, 9), append(seq(1, 4), 77, 78), 0},
		{"state goes on from its end", 0, 1, seq(1, 9), seq(1, 20), 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := book(tt.window, tt.states)
			id, _, _ := s.Acquire([]int32{0}, 0)
			fill(t, s, id, tt.held...)
			s.Release(id)
			got, cached, ok := s.Acquire(tt.prompt, 0)
			if !ok || cached != tt.cached {
				t.Fatalf("cached %d ok %v, want %d", cached, ok, tt.cached)
			}
			if cached > 0 && got != id {
				t.Errorf("slot %d, want %d", got, id)
			}
			if n := s.Len(got); n != cached {
				t.Errorf("slot holds %d tokens, want %d", n, cached)
			}
		})
	}
}

// A window cut back and refilled must still know what was overwritten before.
func TestWindowRemembersOverwrittenCells(t *testing.T) {
	s := book(10, 0)
	id, _, _ := s.Acquire([]int32{0}, 0)
	fill(t, s, id, seq(1, 40)...)
	s.Release(id)
	prompt := append(seq(1, 35), 500, 501)
	if _, cached, _ := s.Acquire(prompt, 0); cached != 35 {
		t.Fatalf("cached %d, want 35", cached)
	}
	s.Release(id)
	// Positions below 40−18 are gone although only 35 tokens are held now.
	if _, cached, _ := s.Acquire(append(seq(1, 29), 9), 0); cached != 0 {
		t.Errorf("cached %d after the cells were overwritten, want 0", cached)
	}
}

func TestBusyAndLimits(t *testing.T) {
	s := book(0, 0)
	a, _, _ := s.Acquire(seq(1, 3), 0)
	b, _, _ := s.Acquire(seq(1, 3), 0)
	if _, _, ok := s.Acquire(seq(1, 3), 0); ok || a == b || s.Free() != 0 {
		t.Errorf("slots %d and %d, a third given: %v, free %d", a, b, ok, s.Free())
	}
	fill(t, s, a, seq(0, 100)...)
	if _, err := s.Append(a, 1); err == nil {
		t.Error("appended past the context")
	}
	s.Release(b)
	s.Release(b)
	if _, err := s.Append(b, 1); err == nil {
		t.Error("appended to a free slot")
	}
	s.Reset(a)
	if s.Len(a) != 0 || s.Free() != 1 {
		t.Errorf("after reset: %d tokens, %d free", s.Len(a), s.Free())
	}
}

func TestLeastRecentlyUsedSlotIsTaken(t *testing.T) {
	s := book(0, 0)
	a, _, _ := s.Acquire([]int32{1}, 0)
	b, _, _ := s.Acquire([]int32{1}, 0)
	s.Release(b)
	s.Release(a)
	if got, _, _ := s.Acquire([]int32{5, 6}, 0); got != b {
		t.Errorf("slot %d, want the older %d", got, b)
	}
}

func TestTruncate(t *testing.T) {
	s := book(8, 0)
	id, _, _ := s.Acquire([]int32{0}, 0)
	fill(t, s, id, seq(1, 30)...)
	for _, tt := range []struct{ n, want int }{{30, 30}, {29, 29}, {10, 0}} {
		if kept, err := s.Truncate(id, tt.n); err != nil || kept != tt.want || s.Len(id) != tt.want {
			t.Errorf("truncate to %d: kept %d with %d tokens left, error %v, want %d", tt.n, kept, s.Len(id), err, tt.want)
		}
	}
	for _, bad := range [][2]int{{id, 1}, {id, -1}, {7, 0}} {
		if _, err := s.Truncate(bad[0], bad[1]); err == nil {
			t.Errorf("truncate of slot %d to %d: no error", bad[0], bad[1])
		}
	}
}

func TestSaltSeparates(t *testing.T) {
	s := book(0, 0)
	for i, tt := range []struct {
		salt uint64
		want int
	}{{1, 0}, {1, 2}, {2, 0}, {1, 2}, {3, 0}} {
		id, cached, _ := s.Acquire(seq(1, 3), tt.salt)
		if cached != tt.want {
			t.Errorf("%d, salt %d: %d tokens cached, want %d", i, tt.salt, cached, tt.want)
		}
		fill(t, s, id, seq(1, 3)[cached:]...)
		s.Release(id)
	}
}
