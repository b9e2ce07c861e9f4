package opstest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ganglion/gpu/ops"
)

func runtimeChecks() []check {
	return []check{
		{name: "runtime/load", run: checkLoad},
		{name: "runtime/refuses-a-broken-plan", run: checkBrokenPlan},
		{name: "runtime/memory", run: checkMemory},
		{name: "runtime/closed", run: checkClosed},
		{name: "runtime/state", run: checkState},
		{name: "runtime/bad-batches", run: checkBadBatches},
		{name: "runtime/copy-page", run: checkCopyPage},
		{name: "runtime/carry", run: checkCarry},
		{name: "runtime/stop", run: checkStop},
	}
}

// modelOptions hold two slots of the small model.
func modelOptions() ops.Options {
	return ops.Options{Slots: 2, Context: 40, MaxRows: 16, Threads: 2}
}

// checkTwoPrograms continues what one program began with another of a smaller shape.
func checkTwoPrograms(b ops.Backend) error {
	tokens := modelTokens([]int{20})[0]
	rt, err := Load(b, smallModel(), modelOptions())
	if err != nil {
		return err
	}
	defer rt.Close()
	var got [][]float32
	for _, part := range []struct{ rows, from, to int }{{16, 0, 13}, {1, 13, 14}, {5, 14, 19}, {1, 19, 20}} {
		prog, err := rt.Compile(ops.Shape{Rows: part.rows, Outs: part.rows})
		if err != nil {
			return fmt.Errorf("compile: %w", err)
		}
		defer prog.Close()
		rows, err := runRows(prog, tokenBatch(tokens[part.from:part.to], part.from, 1))
		if err != nil {
			return err
		}
		got = append(got, rows...)
	}
	want, err := runModel(b, ops.Fast, 1, schedulesOf([]int{20})[0], [][]int32{tokens})
	if err != nil {
		return err
	}
	return sameBits(outputs{got}, want)
}

// checkRollback goes back in a sequence, restores its recurrent state and takes
// another way: earlier positions count, abandoned ones do not. The cut is no further
// back than one batch, for older positions may have left a windowed cache.
func checkRollback(b ops.Backend) error {
	const cut, end = 17, 25
	tokens := modelTokens([]int{end, end})
	other := slices.Concat(tokens[0][:cut], tokens[1][cut:])
	rt, err := Load(b, smallModel(), modelOptions())
	if err != nil {
		return err
	}
	defer rt.Close()
	prog, err := rt.Compile(ops.Shape{Rows: 16, Outs: 16})
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	defer prog.Close()
	var got [][]float32
	run := func(tokens []int32, from int) {
		var rows [][]float32
		if err == nil {
			rows, err = runRows(prog, tokenBatch(tokens, from, 0))
			got = append(got, rows...)
		}
	}
	run(tokens[0][:10], 0)
	run(tokens[0][10:cut], 10)
	if err != nil {
		return err
	}
	saved, err := rt.SaveState(0, nil)
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	run(tokens[0][cut:], cut)
	got = got[:cut]
	if err := rt.LoadState(0, saved); err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	run(other[cut:], cut)
	if err != nil {
		return err
	}
	want, err := runModel(b, ops.Fast, 1, schedulesOf([]int{end})[0], [][]int32{other})
	if err != nil {
		return err
	}
	return sameBits(outputs{got}, want)
}

// checkRestart uses a slot for a second sequence: position 0 forgets the first.
func checkRestart(b ops.Backend) error {
	tokens := modelTokens([]int{16, 9})
	prog, done, err := open(b, smallModel(), modelOptions())
	if err != nil {
		return err
	}
	defer done()
	if _, err := runRows(prog, tokenBatch(tokens[0], 0, 1)); err != nil {
		return err
	}
	got, err := runRows(prog, tokenBatch(tokens[1], 0, 1))
	if err != nil {
		return err
	}
	want, err := runModel(b, ops.Fast, 1, schedulesOf([]int{9})[0], tokens[1:])
	if err != nil {
		return err
	}
	return sameBits(outputs{got}, want)
}

// checkLoad wants progress that rises to the size of the weights, and a load that
// stops when its context is done, before it or in the middle.
func checkLoad(b ops.Backend) error {
	p := smallModel()
	var steps, totals []int64
	rt, err := b.Load(context.Background(), p, modelOptions(), func(done, total int64) {
		steps, totals = append(steps, done), append(totals, total)
	})
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if err := rt.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	size := p.WeightBytes()
	if len(steps) == 0 || !slices.IsSorted(steps) || steps[len(steps)-1] != size {
		return fmt.Errorf("progress was %v, want steps up to %d", steps, size)
	}
	if i := slices.IndexFunc(totals, func(n int64) bool { return n != size }); i >= 0 {
		return fmt.Errorf("progress spoke of a total of %d, want %d", totals[i], size)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := func(done, total int64) {
		if done < total {
			cancel()
		}
	}
	for _, when := range []string{"in the middle", "before it"} { // the first leaves ctx cancelled
		rt, err := b.Load(ctx, p, modelOptions(), stop)
		if !errors.Is(err, context.Canceled) {
			if err == nil {
				rt.Close()
			}
			return fmt.Errorf("load with a context cancelled %s gave %v", when, err)
		}
	}
	return nil
}

func checkBrokenPlan(b ops.Backend) error {
	p := smallModel()
	p.Ops = slices.Delete(p.Ops, 3, 4)
	if _, err := b.Load(context.Background(), p, modelOptions(), nil); !errors.Is(err, ops.ErrPlan) {
		return fmt.Errorf("a plan that reads what nobody wrote gave %v", err)
	}
	o := modelOptions()
	o.Slots = 0
	if _, err := b.Load(context.Background(), smallModel(), o, nil); err == nil {
		return errors.New("options without slots gave no error")
	}
	return nil
}

// checkMemory holds the truth of forecasts: what a runtime says it allocated for
// caches and state is what Plan.DeviceKVBytes says.
func checkMemory(b ops.Backend) error {
	for _, kv := range []ops.KVType{ops.KVF16, ops.KVF32, ops.KVQ8} {
		o := modelOptions()
		o.KV, o.Spare = kv, 3
		p := smallModel()
		rt, err := b.Load(context.Background(), p, o, nil)
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		m := rt.Memory()
		rt.Close()
		if want := p.DeviceKVBytes(o) * int64(ops.Copies(b)); m.KV != want || m.KV == 0 {
			return fmt.Errorf("kv %s: %d bytes, Plan.DeviceKVBytes and Copies say %d", kv, m.KV, want)
		}
		if m.Weights < 0 || m.Scratch < 0 {
			return fmt.Errorf("kv %s: memory %+v", kv, m)
		}
	}
	return nil
}

// checkClosed closes everything twice and wants ErrClosed from then on.
func checkClosed(b ops.Backend) error {
	rt, err := Load(b, smallModel(), modelOptions())
	if err != nil {
		return err
	}
	shape := ops.Shape{Rows: 1, Outs: 1}
	closed, err := rt.Compile(shape)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	left, err := rt.Compile(shape)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	run := func(p ops.Program) error { return p.Run(tokenBatch([]int32{1}, 0, 0), &ops.Result{}) }
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		return fmt.Errorf("closing a program twice: %w", err)
	}
	if err := run(closed); !errors.Is(err, ops.ErrClosed) {
		return fmt.Errorf("a closed program gave %v", err)
	}
	if err := run(left); err != nil {
		return fmt.Errorf("another program of the runtime: %w", err)
	}
	if err := errors.Join(rt.Close(), rt.Close()); err != nil {
		return fmt.Errorf("closing a runtime twice: %w", err)
	}
	_, compile := rt.Compile(shape)
	_, save := rt.SaveState(0, nil)
	for what, err := range map[string]error{
		"compile": compile, "save state": save, "load state": rt.LoadState(0, nil), "run": run(left),
	} {
		if !errors.Is(err, ops.ErrClosed) {
			return fmt.Errorf("%s on a closed runtime gave %v", what, err)
		}
	}
	if err := errors.Join(left.Close(), b.Close(), b.Close()); err != nil {
		return fmt.Errorf("closing a program and twice a backend: %w", err)
	}
	if _, err := b.Load(context.Background(), smallModel(), modelOptions(), nil); !errors.Is(err, ops.ErrClosed) {
		return fmt.Errorf("load on a closed backend gave %v", err)
	}
	return nil
}

// checkState saves and loads recurrent state.
func checkState(b ops.Backend) error {
	tokens := modelTokens([]int{12})[0]
	p := smallModel()
	rt, err := Load(b, p, modelOptions())
	if err != nil {
		return err
	}
	defer rt.Close()
	prog, err := rt.Compile(ops.Shape{Rows: 12, Outs: 12})
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	defer prog.Close()
	if err := rt.LoadState(0, nil); err != nil {
		return fmt.Errorf("load of no state: %w", err)
	}
	start, err := rt.SaveState(0, nil)
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if len(start) != p.States[0].Floats || slices.ContainsFunc(start, func(f float32) bool { return f != 0 }) {
		return fmt.Errorf("the state of position 0 is %v", start)
	}
	if _, err := runRows(prog, tokenBatch(tokens, 0, 0)); err != nil {
		return err
	}
	after, err := rt.SaveState(0, nil)
	if err != nil || slices.Equal(after, start) {
		return fmt.Errorf("the state did not change, or %v", err)
	}
	// Another slot stays as it was, and a state travels from slot to slot.
	if other, err := rt.SaveState(1, nil); err != nil || !slices.Equal(other, start) {
		return fmt.Errorf("the state of another slot is %v, or %v", other, err)
	}
	if err := rt.LoadState(1, after); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if again, err := rt.SaveState(1, nil); err != nil || !slices.Equal(again, after) {
		return fmt.Errorf("what was loaded is not what is saved, or %v", err)
	}
	if err := rt.LoadState(0, nil); err != nil {
		return fmt.Errorf("load of no state: %w", err)
	}
	if again, err := rt.SaveState(0, nil); err != nil || !slices.Equal(again, start) {
		return fmt.Errorf("loading nothing is not the state of position 0, or %v", err)
	}
	return checkStateErrors(b, rt, after)
}

func checkStateErrors(b ops.Backend, rt ops.Runtime, state []float32) error {
	if rt.LoadState(0, state[1:]) == nil || rt.LoadState(2, state) == nil || rt.LoadState(-1, nil) == nil {
		return errors.New("a state of the wrong length or slot gave no error")
	}
	if _, err := rt.SaveState(2, nil); err == nil {
		return errors.New("saving a slot that is not there gave no error")
	}
	plain, err := b.Load(context.Background(), passThrough(3), modelOptions(), nil)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer plain.Close()
	if s, err := plain.SaveState(0, nil); s != nil || err != nil {
		return fmt.Errorf("a plan without state saved %v, %v", s, err)
	}
	return nil
}

// checkBadBatches wants errors, not crashes, and a program that works afterwards.
func checkBadBatches(b ops.Backend) error {
	prog, done, err := open(b, smallModel(), modelOptions())
	if err != nil {
		return err
	}
	defer done()
	good := func() *ops.Batch { return tokenBatch([]int32{1, 2, 3}, 0, 0) }
	want, err := runRows(prog, good())
	if err != nil {
		return err
	}
	for name, spoil := range map[string]func(*ops.Batch){
		"token outside the vocabulary": func(b *ops.Batch) { b.Tokens[1] = modelVocab },
		"token below -1":               func(b *ops.Batch) { b.Tokens[1] = -2 },
		"embedding that is missing":    func(b *ops.Batch) { b.Tokens[1] = -1 },
		"slot that is not there":       func(b *ops.Batch) { b.Slot[2] = 2 },
		"position outside the context": func(b *ops.Batch) { b.Pos = []int32{38, 39, 40} },
		"gap":                          func(b *ops.Batch) { b.Pos[2] = 3 },
		"slot in two pieces":           func(b *ops.Batch) { b.Slot[1] = 1 },
		"output that is no row":        func(b *ops.Batch) { b.Outs[2] = 3 },
		"outputs out of order":         func(b *ops.Batch) { b.Outs[2] = 0 },
		"no wants":                     func(b *ops.Batch) { b.Want = nil },
		"best 0":                       func(b *ops.Batch) { b.Want[0] = ops.Want{Kind: ops.WantTop} },
		"more than the vocabulary":     func(b *ops.Batch) { b.Want[0] = ops.Want{Kind: ops.WantTop, K: math.MaxInt} },
		"page table that is missing":   func(b *ops.Batch) { b.Pages = make([]int32, 0) },
		"page that is not there":       func(b *ops.Batch) { b.Pages = slices.Repeat([]int32{99}, 4) },
		"position without a page":      func(b *ops.Batch) { b.Pages = slices.Repeat([]int32{-1}, 4) },
		"no rows":                      func(b *ops.Batch) { *b = ops.Batch{} },
		"more rows than compiled for":  func(b *ops.Batch) { *b = *tokenBatch(make([]int32, 17), 0, 0) },
	} {
		bad := good()
		spoil(bad)
		if err := prog.Run(bad, &ops.Result{}); err == nil {
			return fmt.Errorf("a batch with a bad %s gave no error", name)
		}
	}
	got, err := runRows(prog, good())
	if err != nil {
		return fmt.Errorf("after bad batches: %w", err)
	}
	return sameBits(outputs{got}, outputs{want})
}

// checkCopyPage gives a second slot the whole first page of the first one, a copy of
// its second page, and its state. Both go on, each in its own way: what one writes
// does not reach the other.
func checkCopyPage(b ops.Backend) error {
	const common, more = ops.PageSize + 7, 5
	tokens := modelTokens([]int{common + more, more})
	other := slices.Concat(tokens[0][:common], tokens[1])
	o := ops.Options{Slots: 2, Context: 2 * ops.PageSize, MaxRows: common, Threads: 2}
	rt, err := b.Load(context.Background(), smallModel(), o, nil)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer rt.Close()
	prog, err := rt.Compile(ops.Shape{Rows: common, Outs: common})
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	defer prog.Close()
	tables := []int32{0, 1, 0, 3, 2, 0, 2, 1} // two groups of two slots of two pages
	run := func(tokens []int32, from, slot int) ([][]float32, error) {
		batch := tokenBatch(tokens, from, slot)
		batch.Pages = tables
		return runRows(prog, batch)
	}
	if _, err := run(tokens[0][:common], 0, 0); err != nil {
		return err
	}
	state, err := rt.SaveState(0, nil)
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	if err := errors.Join(rt.LoadState(1, state), rt.CopyPage(0, 3, 1), rt.CopyPage(1, 1, 0)); err != nil {
		return err
	}
	var got outputs
	for slot, tokens := range [][]int32{tokens[0], other} {
		rows, err := run(tokens[common:], common, slot)
		if err != nil {
			return err
		}
		got = append(got, rows)
	}
	want, err := runModel(b, ops.Fast, 1, schedulesOf([]int{common + more, common + more})[0], [][]int32{tokens[0], other})
	if err != nil {
		return err
	}
	for s := range want {
		want[s] = want[s][common:]
	}
	if err := sameBits(got, want); err != nil {
		return err
	}
	for _, bad := range [][3]int{{-1, 0, 1}, {2, 0, 1}, {0, 99, 1}, {0, 0, -1}} {
		if rt.CopyPage(bad[0], bad[1], bad[2]) == nil {
			return fmt.Errorf("copying page %d to %d of group %d gave no error", bad[2], bad[1], bad[0])
		}
	}
	return nil
}
