package compute

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/ops"
)

// divided is a program of a described runtime, lowered for a bucket of chunks as it would
// be compiled.
func divided(t *testing.T, r *Runtime, rows, chunks int) *lowering {
	t.Helper()
	s := ops.Shape{Rows: rows, Outs: min(rows, 64)}
	p := &Program{rt: r, shape: s, part: r.part(s)}
	l, err := p.divide(chunks)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// longest is the longest predicted time of a dispatch, and its kernel.
func longest(l *lowering) (kernel string, most time.Duration) {
	for _, list := range [][]dispatch{l.list, l.top, l.stats} {
		for i := range list {
			if t := l.rt.b.pace.predict(&list[i]); t > most {
				kernel, most = list[i].kernel, t
			}
		}
	}
	return kernel, most
}

// No dispatch of the real model takes longer than it may, on a device that was not
// measured yet and on one that is slow, whatever the batch is. Where there is no bound
// dispatches of its prompts and its head are far longer.
func TestNoDispatchOfTheRealModelIsLong(t *testing.T) {
	path := realModel(t)
	for kind, d := range map[string]*fakeDevice{"a GPU": newFake(), "a software renderer": renderer()} {
		for _, mode := range []ops.Numerics{ops.Exact, ops.Fast} {
			for _, pace := range []float64{0, 10} {
				t.Run(fmt.Sprintf("%s/%s/%v", kind, mode, pace), func(t *testing.T) {
					b := New(d, Options{})
					b.pace.ratio = pace
					r := described(t, b, path, mode)
					for _, rows := range []int{1, 8, 64, 512} {
						for _, chunks := range []int{1, 2, 16} {
							b.opts.Dispatch = 50 * time.Millisecond
							l := divided(t, r, rows, chunks)
							if kernel, most := longest(l); most > b.opts.Dispatch {
								t.Errorf("%d rows, %d chunks: %s of %v in parts of %+v", rows, chunks, kernel, most, l.shape)
							}
							b.opts.Dispatch = time.Hour
							whole := divided(t, r, rows, chunks)
							if _, most := longest(whole); (rows == 512 || pace > 0) && most < 100*time.Millisecond {
								t.Errorf("%d rows: nothing takes longer than %v where there is no bound: the test tests nothing", rows, most)
							}
							if l.bounded == (len(l.list) == len(whole.list) && l.shape == whole.shape) {
								t.Errorf("%d rows: bounded %v with %d dispatches in parts of %+v, %d and %+v without a bound",
									rows, l.bounded, len(l.list), l.shape, len(whole.list), whole.shape)
							}
						}
					}
				})
			}
		}
	}
}

// Dividing products among dispatches and batches into parts changes no bit, in either mode.
func TestBoundedDispatchesKeepBits(t *testing.T) {
	t.Parallel()
	m := quantised(t)
	inner := plain[0].device(t)
	path := m.path(t, "Q8_0")
	for _, mode := range []ops.Numerics{ops.Exact, ops.Fast} {
		t.Run(mode.String(), func(t *testing.T) {
			var want []float32
			for i, bound := range []time.Duration{0, 30 * time.Microsecond} {
				b := New(inner, Options{Shared: true, Dispatch: bound})
				defer b.Close()
				got := enginetest.Logits(t, b, path, mode, m.Tokens, 2)
				if i == 0 {
					want = got
				} else if !archtest.SameBits(got, want) {
					t.Errorf("dispatches of at most %v give other bits", bound)
				}
			}
		})
	}
}

// A program that was divided for one pace is divided anew when the device shows another,
// and what it computes stays.
func TestProgramsAreDividedByThePace(t *testing.T) {
	m := quantised(t)
	path := m.path(t, "Q8_0")
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := enginetest.Logits(t, c, path, ops.Exact, m.Tokens, 8)
	b := New(plain[0].device(t), Options{Shared: true})
	defer b.Close()
	e, err := engine.Open(context.Background(), engine.Config{Backend: b, Path: path, Numerics: ops.Exact, Context: 256, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	slot, _, _ := e.Acquire(m.Tokens, 0)
	var got []float32
	var counts []int
	for i, ratio := range []float64{1, 400, 400, 1, 1, 1000, 1000, 1} {
		b.mu.Lock()
		b.pace.ratio = ratio
		b.mu.Unlock()
		var rows []engine.Row
		for _, id := range m.Tokens[len(m.Tokens)*i/8 : len(m.Tokens)*(i+1)/8] {
			rows = append(rows, engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}})
		}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range heads {
			got = append(got, h.Row...)
		}
		counts = append(counts, b.Stats().Dispatches)
	}
	if !archtest.SameBits(got, want) {
		t.Error("the logits are not those of the processor")
	}
	if !(counts[1] > 2*counts[0] && counts[2] == counts[1] && counts[3] == counts[0] && counts[5] > counts[1] && counts[7] == counts[0]) {
		t.Errorf("%v dispatches by batch: the program does not follow the pace", counts)
	}
}

// What is submitted stays below the time that a submission should take on each family of
// devices, by the bytes that its memory can move. The partner is a family that has no time.
func TestSubmissionsFitTheBudgets(t *testing.T) {
	path := realModel(t)
	none := devicetest.Profile{Name: "none", Limits: newFake().limits, Bandwidth: 1 << 40}
	for _, p := range append(devicetest.Profiles(), none) {
		t.Run(p.Name, func(t *testing.T) {
			if p.Bandwidth == 0 {
				p.Bandwidth = 17_100_000_000 // that of the slowest family which tells it
			}
			for _, pace := range []float64{0, 10, 0.05} {
				dev := p.Wrap(newFake())
				b := New(dev, Options{})
				b.pace.ratio = pace
				runAll(t, b, path)
				slow := 0
				for _, s := range dev.Slow() {
					if s.Predicted > p.Budget {
						slow++
					}
				}
				if want := p.Name == "none"; (slow > 0) != want {
					t.Errorf("pace %v: %d submissions longer than %v", pace, slow, p.Budget)
				}
			}
		})
	}
}

// runAll runs a prompt and a token of a model whose weights are nowhere.
func runAll(t *testing.T, b *Backend, path string) {
	t.Helper()
	r := described(t, b, path, ops.Fast)
	for _, list := range [][]*memory{r.weights, r.perSequence(), r.shared()} {
		for _, m := range list {
			if err := r.allocate(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer r.Close()
	for _, rows := range []int{1, 512} {
		l := divided(t, r, rows, 2)
		l.claim()
		if err := r.growShared(); err != nil {
			t.Fatal(err)
		}
		c := &cuts{b: b, list: l.list}
		if err := c.record(); err != nil {
			t.Fatal(err)
		}
		if err := b.submit(&Stats{}, nil, c); err != nil {
			t.Fatal(err)
		}
		if err := c.forget(); err != nil {
			t.Fatal(err)
		}
	}
}

// A batch whose rows take units of others is not divided, whatever its dispatches take.
func TestBatchesThatBelongTogetherAreWhole(t *testing.T) {
	for _, together := range []bool{false, true} {
		b := New(newFake(), Options{Dispatch: 1})
		plan := pass(8)
		r := newRuntime(b, plan, passOptions(64))
		if err := r.describe(); err != nil {
			t.Fatal(err)
		}
		if together {
			plan.Lists = []ops.List{{Name: "order", Per: 1, Units: 1}}
		}
		if l := divided(t, r, 64, 1); (l.shape == ops.Shape{Rows: 64, Outs: 64}) != together {
			t.Errorf("together %v: parts of %+v", together, l.shape)
		}
	}
}

// Where dispatches must be short text runs row by row, and a picture whose rows see to its
// end as a whole, with all that is its own.
func TestPicturesAreNotCut(t *testing.T) {
	const rows, begin, end = 40, 11, 23
	b := New(newFake(), Options{Dispatch: 1})
	defer b.Close()
	plan := pass(8)
	plan.Spans = 1
	rt, err := b.Load(context.Background(), plan, passOptions(rows), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	prog, err := rt.Compile(ops.Shape{Rows: rows, Outs: rows})
	if err != nil {
		t.Fatal(err)
	}
	batch := passBatch(rows, 8)
	batch.Spans = make([]ops.Span, rows)
	for r := range rows {
		batch.Outs, batch.Want = append(batch.Outs, int32(r)), append(batch.Want, ops.Want{})
		batch.Rotary = append(batch.Rotary, int32(r), 0, 0)
		if begin <= r && r < end {
			batch.Spans[r].Until = end
		}
	}
	for at := 0; at < rows; {
		_, part, n, err := prog.(*Program).next(batch, at)
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if at == begin {
			want = end - begin
		}
		if n != want || len(part.Tokens) != n || len(part.Outs) != n || part.Rotary[0] != int32(at) || part.Spans[0] != batch.Spans[at] || part.Embeds[0] != float32(8*at) {
			t.Errorf("row %d: %d rows, want %d, in %+v", at, n, want, part)
		}
		at += max(n, 1)
	}
}
