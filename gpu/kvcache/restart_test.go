package kvcache

import (
	"slices"
	"testing"

	"ganglion/gpu/ops"
)

// A sequence that begins like one that was run again already has its pages, up to what
// may be taken back.
func TestResumeSharesBeginnings(t *testing.T) {
	o := ops.Options{Slots: 2, Context: 512, MaxRows: 64}
	r := newRig(t, []int{0}, 0, o)
	prompt := make([]int32, 300)
	for slot := range 2 {
		_, cached, _ := r.acquire(append(slices.Clone(prompt), int32(slot)), 3)
		for part := range slices.Chunk(prompt[cached:], 64) {
			r.run(slot, part...)
		}
	}
	lost := r.c.Sequences()
	r.dev = r.dev.blank()
	r.c.Restart(r.dev)
	var resumed []int
	for _, q := range lost {
		n, err := r.c.Resume(q.Slot, q.Beginning(o.MaxRows))
		if err != nil {
			t.Fatal(err)
		}
		resumed = append(resumed, n)
		for part := range slices.Chunk(q.Tokens[n:], o.MaxRows) {
			r.run(q.Slot, part...)
		}
	}
	if want := []int{0, 236}; !slices.Equal(resumed, want) {
		t.Errorf("%v tokens in place before anything ran again, want %v", resumed, want)
	}
	r.checked()
	if _, err := r.c.Resume(0, prompt); err == nil {
		t.Error("a slot that holds tokens was filled a second time")
	}
}

// Nothing of the lost device is taken for known.
func TestRestartForgetsFinishedSequences(t *testing.T) {
	for _, states := range []int{0, 1} {
		r := newRig(t, []int{0, 30}, states, ops.Options{Slots: 2, Context: 256, MaxRows: 64, Spare: 4, Snapshots: 4})
		prompt := make([]int32, 100)
		id, _, _ := r.acquire(prompt, 0)
		for part := range slices.Chunk(prompt, 64) {
			r.run(id, part...)
		}
		r.c.Release(id)
		if _, cached, _ := r.acquire(prompt, 0); cached == 0 {
			t.Fatal("nothing was known before the restart, so nothing is tested")
		}
		r.dev = r.dev.blank()
		r.c.Restart(r.dev)
		r.checked()
		if _, cached, _ := r.acquire(prompt, 0); cached != 0 {
			t.Errorf("%d tokens are said to be in place on a device without any", cached)
		}
	}
}

func TestCutsOfASequenceThatRunsAgain(t *testing.T) {
	for _, tt := range []struct {
		name            string
		mark, bad, most int
		beginning       int
		cuts            []int
	}{
		{"plain", -1, -1, 8, 12, []int{8, 16, 20}},
		{"mark inside a batch", 10, -1, 8, 10, []int{8, 10, 18, 20}},
		{"nothing follows what is not finite", -1, 17, 8, 12, []int{8, 16, 17, 20}},
		{"both", 5, 17, 64, 0, []int{5, 17, 20}},
		{"mark at the start", 0, -1, 64, 0, []int{20}},
	} {
		q := Sequence{Tokens: make([]int32, 20), Mark: tt.mark, Bad: tt.bad}
		if n := len(q.Beginning(tt.most)); n != tt.beginning {
			t.Errorf("%s: %d tokens may be put in place, want %d", tt.name, n, tt.beginning)
		}
		var cuts []int
		for n := 0; n < 20; {
			n = q.Cut(n, tt.most)
			cuts = append(cuts, n)
		}
		if !slices.Equal(cuts, tt.cuts) {
			t.Errorf("%s: batches end at %v, want %v", tt.name, cuts, tt.cuts)
		}
	}
}
