package kvcache

import (
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/ops"
)

var small = ops.Options{Slots: 2, Context: 400, MaxRows: 200}

func TestAcquire(t *testing.T) {
	tests := map[string]struct {
		windows []int
		before  []int32 // a finished sequence
		prompt  []int32
		want    int
	}{
		"same prompt":             {[]int{0}, seq(1, 150), seq(1, 150), 149},
		"longer prompt":           {[]int{0}, seq(1, 150), seq(1, 170), 150},
		"shares half a page":      {[]int{0}, seq(1, 150), append(seq(1, 100), 0, 0), 100},
		"shares a beginning only": {[]int{0}, seq(1, 150), append(seq(1, 1), 0), 1},
		"shares nothing":          {[]int{0}, seq(1, 150), seq(2, 150), 0},
		"shorter prompt":          {[]int{0}, seq(1, 150), seq(1, 65), 64},
		"one token":               {[]int{0}, seq(1, 150), seq(1, 1), 0},
		"window":                  {[]int{0, 20}, seq(1, 150), seq(1, 150), 149},
		"window that is gone":     {[]int{0, 20}, seq(1, 390), append(seq(1, 70), 0, 0), 0},
		"window alone":            {[]int{20}, seq(1, 150), append(seq(1, 140), 0, 0), 140},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tt.windows, 0, ops.Options{Slots: 1, Context: 400, MaxRows: 64})
			id, _, _ := r.acquire([]int32{9999, 9999}, 0)
			for part := range slices.Chunk(tt.before, 64) {
				r.run(id, part...)
			}
			r.c.Release(id)
			id, cached, ok := r.acquire(tt.prompt, 0)
			if !ok || cached != tt.want {
				t.Fatalf("%d tokens in place, want %d", cached, tt.want)
			}
			r.run(id, tt.prompt[cached:]...)
		})
	}
}

// A sequence shares the full pages of one that is still running, and has a copy of no
// more than it needs.
func TestSharesWithARunningSequence(t *testing.T) {
	r := newRig(t, []int{0, 100}, 0, small)
	a, _, _ := r.acquire(seq(1, 150), 7)
	r.run(a, seq(1, 150)...)
	b, cached, _ := r.acquire(append(seq(1, 140), 0, 0), 7)
	if cached != 128 {
		t.Fatalf("%d tokens in place, want two pages", cached)
	}
	for g := range r.c.pools {
		if x, y := r.c.table(g, a), r.c.table(g, b); x[0] != y[0] || x[1] != y[1] || y[2] >= 0 {
			t.Errorf("group %d: tables %v and %v, want two pages in common", g, x[:3], y[:3])
		}
	}
	r.run(b, seq(129, 30)...) // as the other one: the page is its own until it is full
	if x, y := r.c.table(0, a), r.c.table(0, b); x[2] == y[2] {
		t.Error("two sequences write to one page")
	}
	r.run(a, seq(151, 42)...)
	r.run(b, seq(159, 34)...)
	if x, y := r.c.table(0, a), r.c.table(0, b); x[2] != y[2] {
		t.Error("equal full pages are kept twice")
	}
	if _, cached, ok := r.acquire(seq(1, 3), 7); ok || cached != 0 || r.c.Free() != 0 {
		t.Error("a third sequence got one of two slots")
	}
}

func TestSaltSeparates(t *testing.T) {
	r := newRig(t, []int{0}, 0, small)
	for i, tt := range []struct {
		salt uint64
		want int
	}{{1, 0}, {1, 99}, {2, 0}, {1, 99}, {3, 0}} {
		id, cached, _ := r.acquire(seq(1, 100), tt.salt)
		if cached != tt.want {
			t.Errorf("%d, salt %d: %d tokens in place, want %d", i, tt.salt, cached, tt.want)
		}
		r.run(id, seq(1, 100)[cached:]...)
		r.c.Release(id)
	}
}

// Finished sequences go when their pages are needed, the one used last stays.
func TestEvictsWhatWasUsedLeastRecently(t *testing.T) {
	r := newRig(t, []int{0}, 0, ops.Options{Slots: 1, Context: 256, MaxRows: 256, Spare: 2})
	use := func(from int) int {
		id, cached, _ := r.acquire(seq(from, 130), 0)
		r.run(id, seq(from, 130)[cached:]...)
		r.c.Release(id)
		r.checked()
		return cached
	}
	use(1000)
	use(2000)
	if n := use(1000); n != 129 {
		t.Errorf("%d tokens in place, want all but the last", n)
	}
	use(3000) // needs three of six pages
	if n := use(1000); n != 129 {
		t.Errorf("the sequence used last has %d tokens in place", n)
	}
	if n := use(2000); n >= 129 {
		t.Errorf("the sequence used least recently has %d tokens in place", n)
	}
}

func TestResetLeavesSharedPagesAlone(t *testing.T) {
	r := newRig(t, []int{0}, 0, small)
	a, _, _ := r.acquire(seq(1, 100), 0)
	r.run(a, seq(1, 100)...)
	if _, err := r.c.Append(a, 5); err != nil {
		t.Fatal(err)
	}
	r.c.Reset(a)
	r.checked()
	if r.c.Len(a) != 0 {
		t.Errorf("%d tokens after a reset", r.c.Len(a))
	}
	b, cached, _ := r.acquire(seq(1, 100), 0)
	if cached != 64 {
		t.Errorf("%d tokens in place, want the page that had run whole", cached)
	}
	r.run(b, seq(65, 36)...)
}

// Numbers that are not finite do not become known, and can be taken back.
func TestSpoil(t *testing.T) {
	r := newRig(t, []int{0}, 0, small)
	a, _, _ := r.acquire(seq(1, 150), 0)
	r.run(a, seq(1, 60)...)
	r.c.Spoil(a, 75)
	r.c.Spoil(a, 70)
	if _, err := r.c.Append(a, 1); err == nil || !strings.Contains(err.Error(), "position 70") {
		t.Errorf("a token after a bad one: error %v", err)
	}
	if _, err := r.c.Truncate(a, 50); err != nil {
		t.Fatal(err)
	}
	r.run(a, seq(51, 50)...)
	for _, tok := range seq(101, 50) {
		if _, err := r.c.Append(a, tok); err != nil {
			t.Fatal(err)
		}
	}
	r.c.Spoil(a, 110)
	if err := r.c.Commit([]int{a}); err != nil {
		t.Fatal(err)
	}
	r.c.Release(a)
	r.checked()
	if _, cached, _ := r.acquire(seq(1, 150), 0); cached != 64 {
		t.Errorf("%d tokens of a spoilt sequence in place, want its good page", cached)
	}
}

func TestTruncate(t *testing.T) {
	r := newRig(t, []int{8, 0}, 0, ops.Options{Slots: 1, Context: 400, MaxRows: 20})
	id, _, _ := r.acquire(seq(1, 300), 0)
	for part := range slices.Chunk(seq(1, 300), 20) {
		r.run(id, part...)
	}
	for _, tt := range []struct{ n, want int }{{300, 300}, {299, 299}, {281, 281}, {100, 0}} {
		if kept, err := r.c.Truncate(id, tt.n); err != nil || kept != tt.want || r.c.Len(id) != tt.want {
			t.Errorf("truncate to %d: kept %d with %d tokens left, error %v, want %d", tt.n, kept, r.c.Len(id), err, tt.want)
		}
		r.checked()
	}
	for _, bad := range [][2]int{{id, 1}, {id, -1}, {7, 0}} {
		if _, err := r.c.Truncate(bad[0], bad[1]); err == nil {
			t.Errorf("truncate of slot %d to %d: no error", bad[0], bad[1])
		}
	}
}

// Recurrent state comes back at the lengths of its snapshots only.
func TestSnapshots(t *testing.T) {
	o := small
	o.Snapshots = 3
	r := newRig(t, []int{0}, 1, o)
	id, _, _ := r.acquire(seq(1, 100), 0)
	r.run(id, seq(1, 70)...)
	r.run(id, seq(71, 30)...) // the prompt ends
	r.run(id, 101)
	if err := r.c.Mark(id); err != nil {
		t.Fatal(err)
	}
	r.run(id, 102)
	r.run(id, 103)
	for _, tt := range []struct{ n, want int }{{102, 101}, {100, 100}, {99, 70}} {
		if kept, err := r.c.Truncate(id, tt.n); err != nil || kept != tt.want {
			t.Errorf("truncate to %d: kept %d, error %v, want %d", tt.n, kept, err, tt.want)
		}
		r.checked()
	}
	r.run(id, seq(71, 30)...)
	r.c.Release(id)
	for _, tt := range []struct{ prompt, want int }{{150, 100}, {100, 70}, {70, 0}} {
		b, cached, _ := r.acquire(seq(1, tt.prompt), 0)
		if cached != tt.want {
			t.Errorf("prompt of %d: %d tokens in place, want %d", tt.prompt, cached, tt.want)
		}
		r.run(b, seq(1+cached, 1)...)
		r.c.Release(b)
		r.checked()
	}
}

func TestFaultsOfTheDevice(t *testing.T) {
	o := small
	o.Snapshots = 3
	r := newRig(t, []int{0}, 1, o)
	id, _, _ := r.acquire(seq(1, 100), 0)
	r.run(id, seq(1, 100)...)
	r.run(id, 101)
	r.dev.faults = true
	if err := r.c.Mark(id); err == nil || !strings.Contains(err.Error(), "mark") {
		t.Errorf("mark: error %v", err)
	}
	if _, err := r.c.Truncate(id, 100); err == nil || r.c.Len(id) != 0 {
		t.Errorf("truncate: error %v, %d tokens left of which the state is unknown", err, r.c.Len(id))
	}
	r.c.Release(id)
	r.checked()
	if _, cached, ok := r.acquire(seq(1, 100), 0); !ok || cached != 0 {
		t.Errorf("%d tokens in place without state", cached)
	}
	r.checked()
}

func TestMisuse(t *testing.T) {
	r := newRig(t, []int{0}, 0, small)
	for name, err := range map[string]error{
		"append": func() error { _, err := r.c.Append(0, 1); return err }(),
		"commit": r.c.Commit([]int{0}),
		"mark":   r.c.Mark(5),
	} {
		if err == nil {
			t.Errorf("%s of a slot that is not in use: no error", name)
		}
	}
	r.c.Release(0)
	r.c.Reset(-1)
	r.c.Spoil(9, 0)
	if _, _, ok := r.c.Acquire(nil, 0); ok {
		t.Error("an empty prompt got a slot")
	}
	id, _, _ := r.acquire([]int32{-1, -1}, 0)
	r.run(id, slices.Repeat([]int32{-1}, 100)...)
	r.c.Release(id)
	if _, cached, _ := r.acquire(slices.Repeat([]int32{-1}, 100), 0); cached != 0 {
		t.Errorf("%d embeddings are taken for known", cached)
	}
	known, _, _ := r.acquire(seq(-200, 100), 0)
	r.run(known, seq(-200, 100)...)
	r.c.Release(known)
	if _, cached, _ := r.acquire(seq(-200, 100), 0); cached == 0 {
		t.Error("embeddings with numbers of their own are not known again")
	}
	r.checked()
	full, _, _ := r.acquire(seq(1, 3), 1)
	r.run(full, seq(1, small.MaxRows)...)
	r.run(full, seq(1, small.MaxRows)...)
	if _, err := r.c.Append(full, 1); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("one token too many: error %v", err)
	}
}

// Partner of TestRandom: a page that belongs to another sequence is noticed.
func TestRigNoticesAWrongPage(t *testing.T) {
	r := newRig(t, []int{0}, 0, small)
	a, _, _ := r.acquire(seq(1, 100), 0)
	r.run(a, seq(1, 100)...)
	b, _, _ := r.acquire(seq(500, 100), 0)
	r.run(b, seq(500, 100)...)
	r.c.table(0, a)[0] = r.c.table(0, b)[0]
	if err := r.tryRun(a, []int32{7}); err == nil || !strings.Contains(err.Error(), "wrong cell") {
		t.Errorf("error %v, want one about a wrong cell", err)
	}
}
