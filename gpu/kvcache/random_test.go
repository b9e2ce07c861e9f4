package kvcache

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ganglion/gpu/ops"
)

// TestRandom drives the books as an engine would, with prompts that share beginnings
// at random lengths: every row must see the cells of its own sequence, and the books
// must agree with themselves after every step.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := ops.Options{
			Slots:     rapid.IntRange(1, 4).Draw(t, "slots"),
			Context:   rapid.SampledFrom([]int{100, 256, 300}).Draw(t, "context"),
			MaxRows:   rapid.SampledFrom([]int{1, 7, 64, 130}).Draw(t, "rows"),
			Spare:     rapid.IntRange(0, 3).Draw(t, "spare"),
			Snapshots: rapid.IntRange(0, 4).Draw(t, "snapshots"),
		}
		windows := rapid.SampledFrom([][]int{{0}, {0, 30}, {70}, {1, 0}, {20, 100}, {}}).Draw(t, "windows")
		states := rapid.IntRange(0, 1).Draw(t, "states")
		if len(windows) == 0 {
			states = 1
		}
		r := newRig(t, windows, states, o)
		known := [][]int32{nil} // sequences to share beginnings with
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			r.step(t, o, &known)
			r.checked()
		}
		for id := range r.c.slots {
			r.c.Release(id)
			r.checked()
		}
	})
}

func (r *rig) step(t *rapid.T, o ops.Options, known *[][]int32) {
	id := rapid.IntRange(0, o.Slots-1).Draw(t, "slot")
	s := &r.c.slots[id]
	more := func(label string) []int32 {
		n := rapid.IntRange(1, o.MaxRows).Draw(t, label)
		return rapid.SliceOfN(rapid.Int32Range(0, 2), n, n).Draw(t, "tokens")
	}
	if !s.busy {
		old := rapid.SampledFrom(*known).Draw(t, "known")
		prompt := slices.Concat(old[:rapid.IntRange(0, len(old)).Draw(t, "shared")], more("new"))
		prompt = prompt[:min(len(prompt), o.Context)]
		id, cached, ok := r.acquire(prompt, rapid.Uint64Range(0, 1).Draw(t, "salt"))
		if !ok {
			t.Fatalf("no slot though one is free")
		}
		for part := range slices.Chunk(prompt[cached:], o.MaxRows) {
			r.run(id, part...)
		}
		*known = append(*known, prompt)
		return
	}
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0:
		*known = append(*known, slices.Clone(s.tokens))
		r.c.Release(id)
	case 1:
		if err := r.c.Mark(id); err != nil {
			t.Fatalf("%v", err)
		}
	case 2:
		r.truncate(t, id, o)
	case 3:
		r.fail(t, id, more("doubtful"), o)
	case 4:
		r.restart(t, o)
	default:
		tokens := more("more")
		r.run(id, tokens[:min(len(tokens), o.Context-len(s.tokens))]...)
	}
}

// truncate takes tokens back; as many as a batch has are always possible without
// recurrent state, and a mark with it. A beginning that was known comes with what a row
// behind it sees: where there are windows, going back into its last page is not promised.
func (r *rig) truncate(t *rapid.T, id int, o ops.Options) {
	s := &r.c.slots[id]
	have, mark := len(s.tokens), s.mark.length
	n := rapid.IntRange(max(0, have-2*o.MaxRows), have).Draw(t, "truncate")
	kept, err := r.c.Truncate(id, n)
	if err != nil || kept > n || kept != len(s.tokens) {
		t.Fatalf("truncate %d to %d: kept %d, length %d, error %v", have, n, kept, len(s.tokens), err)
	}
	near := n >= have-o.MaxRows
	own := n-n%ops.PageSize >= r.begun[id] || !r.windowed()
	if !r.state && near && own && kept < n-n%ops.PageSize {
		t.Fatalf("truncate %d to %d of a sequence that began with %d: kept %d", have, n, r.begun[id], kept)
	}
	r.begun[id] = min(r.begun[id], kept)
	if r.state && near && mark >= have-o.MaxRows && mark <= n && kept < mark-mark%ops.PageSize && kept < mark {
		t.Fatalf("truncate %d to %d, mark at %d: kept %d", have, n, mark, kept)
	}
}

// windowed tells whether any cache has a window.
func (r *rig) windowed() bool {
	return slices.ContainsFunc(r.c.paging.Groups, func(g ops.PageGroup) bool { return g.Window > 0 })
}

// fail runs a batch that writes nonsense and is reset.
func (r *rig) fail(t *rapid.T, id int, tokens []int32, o ops.Options) {
	s := &r.c.slots[id]
	for _, tok := range tokens[:min(len(tokens), o.Context-len(s.tokens))] {
		pos, err := r.c.Append(id, tok)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for g := range r.c.pools {
			r.dev.cells[g][int(r.c.table(g, id)[pos/ops.PageSize])*ops.PageSize+pos%ops.PageSize] = 1
		}
	}
	r.dev.states[id] = 1
	r.c.Reset(id)
	r.begun[id] = 0
}

// restart loses the device and runs again on another one what the slots hold.
func (r *rig) restart(t *rapid.T, o ops.Options) {
	lost := r.c.Sequences()
	r.dev = r.dev.blank()
	r.c.Restart(r.dev)
	r.checked()
	for _, q := range lost {
		n, err := r.c.Resume(q.Slot, q.Beginning(o.MaxRows))
		if err != nil {
			t.Fatalf("%v", err)
		}
		r.begun[q.Slot] = n
		if n == q.Mark {
			r.mark(t, q.Slot)
		}
		for n < len(q.Tokens) {
			end := q.Cut(n, o.MaxRows)
			r.run(q.Slot, q.Tokens[n:end]...)
			if n = end; n == q.Mark {
				r.mark(t, q.Slot)
			}
		}
		if s := &r.c.slots[q.Slot]; !slices.Equal(s.tokens, q.Tokens) || s.mark.length != q.Mark {
			t.Fatalf("slot %d holds %d tokens and a mark at %d, want %d and %d", q.Slot, len(s.tokens), s.mark.length, len(q.Tokens), q.Mark)
		}
	}
}

func (r *rig) mark(t *rapid.T, id int) {
	if err := r.c.Mark(id); err != nil {
		t.Fatalf("%v", err)
	}
}
