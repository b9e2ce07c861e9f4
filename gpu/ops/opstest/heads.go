package opstest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/plugins/rowstats"
)

// headChecks read rows of known logits back in every way.
func headChecks() []check {
	var checks []check
	for _, vocab := range []int{1, 7, 256, 1023, 1025, 5000} {
		for _, ties := range []bool{false, true} {
			name := fmt.Sprintf("heads/%d/ties=%v", vocab, ties)
			checks = append(checks, check{name: name, run: func(b ops.Backend) error { return checkHeads(b, name, vocab, ties) }})
		}
	}
	return append(checks,
		check{name: "heads/some-rows", run: checkSomeRows},
		check{name: "heads/no-rows", run: checkNoRows},
		check{name: "heads/nan-guard", run: checkNaNGuard})
}

// passThrough is a plan whose logits are the row of Batch.Embeds.
func passThrough(width int) *ops.Plan {
	return Plan("pass", width, func(_ *ops.Builder, row ops.View) ops.View { return row })
}

func checkHeads(b ops.Backend, name string, vocab int, ties bool) error {
	const rows = 6
	r := random(name)
	logits := make([][]float32, rows)
	batch := ops.Batch{}
	for i := range logits {
		logits[i] = vector(r, vocab, nil)
		if ties {
			logits[i] = vector(r, vocab, few)
		}
		if i == rows-1 {
			spread(logits[i])
		}
		appendRow(&batch, -1, i, 0)
		batch.Embeds = append(batch.Embeds, logits[i]...)
	}
	batch.Want = []ops.Want{{Kind: ops.WantBest}, {Kind: ops.WantTop, K: 1, Stats: true}, {Kind: ops.WantTop, K: min(vocab, 40)},
		{Kind: ops.WantRow, Stats: true}, {Kind: ops.WantBest, Stats: true}, {Kind: ops.WantTop, K: min(vocab, 256), Stats: true}}
	for _, mode := range modes(b) {
		heads, err := readHeads(b, mode, vocab, &batch)
		if err != nil {
			return err
		}
		want, err := readHeads(ref.New(), mode, vocab, &batch)
		if err != nil {
			return fmt.Errorf("ref: %w", err)
		}
		for i, h := range heads {
			err := checkHead(h, batch.Want[i], logits[i])
			if mode == ops.Exact && math.Float32bits(h.LogSumExp) != math.Float32bits(want[i].LogSumExp) {
				err = errors.Join(err, fmt.Errorf("log-sum-exp %v, ref has %v", h.LogSumExp, want[i].LogSumExp))
			}
			if mode == ops.Exact && h.Stats != want[i].Stats {
				err = errors.Join(err, fmt.Errorf("statistics %+v, ref has %+v", h.Stats, want[i].Stats))
			}
			if err != nil {
				return fmt.Errorf("%s: row %d: %w", mode, i, err)
			}
		}
	}
	return nil
}

// spread makes a row of logits that are far from zero and from each other: the mean is
// much of each, and some have no weight.
func spread(row []float32) {
	for i := range row {
		row[i] = 300 + 40*row[i]
	}
}

// readHeads runs a batch through passThrough and copies the heads.
func readHeads(b ops.Backend, mode ops.Numerics, vocab int, batch *ops.Batch) ([]ops.Head, error) {
	n := len(batch.Tokens)
	prog, done, err := open(b, passThrough(vocab), ops.Options{Slots: 1, Context: n, MaxRows: n, Threads: 2, Numerics: mode})
	if err != nil {
		return nil, err
	}
	defer done()
	var r ops.Result
	if err := prog.Run(batch, &r); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if len(r.Heads) != len(batch.Outs) {
		return nil, fmt.Errorf("%d heads for %d outputs", len(r.Heads), len(batch.Outs))
	}
	heads := slices.Clone(r.Heads)
	for i := range heads {
		heads[i].IDs, heads[i].Logits, heads[i].Row = slices.Clone(heads[i].IDs), slices.Clone(heads[i].Logits), slices.Clone(heads[i].Row)
	}
	return heads, nil
}

// checkHead compares a head with the logits it was read from.
func checkHead(h ops.Head, want ops.Want, logits []float32) error {
	order := make([]int32, len(logits))
	for i := range order {
		order[i] = int32(i)
	}
	sort.SliceStable(order, func(i, j int) bool { return logits[order[i]] > logits[order[j]] })
	if h.Best != order[0] || h.Max != logits[order[0]] {
		return fmt.Errorf("best is token %d with %v, want %d with %v", h.Best, h.Max, order[0], logits[order[0]])
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - float64(h.Max))
	}
	lse := float64(h.Max) + math.Log(sum)
	// Sums of 1,024 in lanes, then of blocks: 64 + 4 + vocab/1024 roundings.
	bound := (functionRoundings + 68 + float64(len(logits))/1024) * unit * (1 + math.Abs(lse))
	if diff := math.Abs(float64(h.LogSumExp) - lse); !(diff <= bound) {
		return fmt.Errorf("log-sum-exp is %v, want %v, off by %.3g where %.3g is allowed", h.LogSumExp, lse, diff, bound)
	}
	if err := checkStats(h.Stats, want.Stats, logits, sum); err != nil {
		return err
	}
	if want.Kind == ops.WantTop {
		if !slices.Equal(h.IDs, order[:want.K]) {
			return fmt.Errorf("best %d are %v, want %v", want.K, h.IDs, order[:want.K])
		}
		for i, id := range h.IDs {
			if h.Logits[i] != logits[id] {
				return fmt.Errorf("logit of token %d is %v, want %v", id, h.Logits[i], logits[id])
			}
		}
	}
	if want.Kind == ops.WantRow && !slices.Equal(h.Row, logits) {
		return errors.New("the row is not the logits")
	}
	return nil
}

// checkStats compares statistics with those of the logits, whose weights relative to the
// largest one have a sum. A lane of a block adds 64 numbers, with one rounding each beside
// that of the number itself; weights err by 3·unit besides.
func checkStats(got rowstats.Stats, wanted bool, logits []float32, sum float64) error {
	if !wanted {
		if got != (rowstats.Stats{}) {
			return fmt.Errorf("statistics %+v, none were wanted", got)
		}
		return nil
	}
	n := float64(len(logits))
	var mean, squares, size, entropy float64
	top := slices.Max(logits)
	for _, x := range logits {
		mean += float64(x) / n
	}
	for _, x := range logits {
		d, below := float64(x)-mean, float64(x)-float64(top)
		squares += d * d / n
		size = max(size, math.Abs(float64(x)))
		entropy -= math.Exp(below) / sum * (below - math.Log(sum))
	}
	std := math.Sqrt(squares)
	near := func(what string, got float32, want, scale float64) error {
		if off := math.Abs(float64(got) - want); !(off <= 72*unit*scale) {
			return fmt.Errorf("%s is %v, want %v, off by %.3g where %.3g is allowed", what, got, want, off, 72*unit*scale)
		}
		return nil
	}
	if got.Finite != len(logits) || got.Max != top {
		return fmt.Errorf("%d finite logits up to %v, want %d up to %v", got.Finite, got.Max, len(logits), top)
	}
	return errors.Join(near("mean", got.Mean, mean, size), near("standard deviation", got.Std, std, size),
		near("log-sum-exp of the statistics", got.LogSumExp, float64(top)+math.Log(sum), size+1),
		near("entropy", got.Entropy, entropy, entropy+1))
}

// checkSomeRows wants few of many rows.
func checkSomeRows(b ops.Backend) error {
	const width, rows = 33, 20
	r := random("some")
	var batch ops.Batch
	for i := range rows {
		appendRow(&batch, -1, i, 0)
		batch.Embeds = append(batch.Embeds, vector(r, width, nil)...)
	}
	batch.Outs = []int32{3, 4, 17}
	batch.Want = []ops.Want{{Kind: ops.WantRow}, {Kind: ops.WantBest}, {Kind: ops.WantRow}}
	heads, err := readHeads(b, ops.Fast, width, &batch)
	if err != nil {
		return err
	}
	for i, row := range batch.Outs {
		if err := checkHead(heads[i], batch.Want[i], batch.Embeds[row*width:(row+1)*width]); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// checkNoRows runs a batch without outputs, as the first pieces of a prompt are.
func checkNoRows(b ops.Backend) error {
	batch := ops.Batch{Tokens: []int32{-1}, Pos: []int32{0}, Slot: []int32{0}, Embeds: make([]float32, 5)}
	heads, err := readHeads(b, ops.Fast, 5, &batch)
	if err == nil && len(heads) != 0 {
		return fmt.Errorf("%d heads where none was wanted", len(heads))
	}
	return err
}

// checkNaNGuard wants an error in the heads of logits that are not finite, and good
// heads from the same batch and from the same program afterwards.
func checkNaNGuard(b ops.Backend) error {
	const width = 300
	prog, done, err := open(b, passThrough(width), ops.Options{Slots: 1, Context: 2, MaxRows: 2, Threads: 1})
	if err != nil {
		return err
	}
	defer done()
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0} {
		for _, want := range []ops.Want{{Kind: ops.WantBest}, {Kind: ops.WantTop, K: 3}, {Kind: ops.WantRow}} {
			for _, at := range []int{0, 255, width - 1} {
				batch := ops.Batch{Tokens: []int32{-1, -1}, Pos: []int32{0, 1}, Slot: []int32{0, 0}, Outs: []int32{0, 1}, Want: []ops.Want{want, want}}
				batch.Embeds = make([]float32, 2*width)
				batch.Embeds[at] = float32(bad)
				var r ops.Result
				if err := prog.Run(&batch, &r); err != nil {
					return fmt.Errorf("logit %v of token %d failed the batch: %w", bad, at, err)
				}
				if err := r.Heads[1].Err; err != nil {
					return fmt.Errorf("logit %v of token %d failed another row: %w", bad, at, err)
				}
				if err := r.Heads[0].Err; (err != nil) != (bad != 0) {
					return fmt.Errorf("logit %v of token %d, read back as %v, gave error %v", bad, at, want, err)
				}
			}
		}
	}
	return nil
}
