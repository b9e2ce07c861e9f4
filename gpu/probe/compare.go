package probe

import (
	"fmt"
	"math"

	"ganglion/gpu/ops"
	"ganglion/plugins/rowstats"
)

// The bounds of fast mode: by how much of a row's mean square the values of a part of
// the row may differ. Kernels round activations to 13 bits or to halves, which makes less
// than 10⁻⁶ of it in one product; two in a row make 10⁻⁵ at most, and a layer some
// more. One with a cache of halves or of q8_0 makes ten times that, for a number that rounds to the neighbouring one in
// q8_0 differs by 1/127. A tile that
// is wrong makes 1, and 10⁻⁴ where a bit of a rounded activation is. Kernels that round to
// bytes, as the processor's do, need coarseBound.
const (
	fastPart     = 32
	defaultBound = 1e-6
	matrixBound  = 2e-6
	chainBound   = 1e-5 // of products and of an attention behind one another
	layerBound   = 5e-5
	roundedBound = 5e-4 // of a layer over a cache of halves or of q8_0
	coarseBound  = 0.01
)

// lseBound is for the log-sum-exp of a row that is known: fast mode has the kernels of
// exact mode there, in whose sums a float's last digits differ.
const lseBound = 1e-4

// compare says how an answer differs from what it must be, whose heads have whole rows
// besides; empty: it does not. bound 0 is defaultBound.
func compare(got, want []ops.Head, mode ops.Numerics, bound float64) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d heads, want %d", len(got), len(want))
	}
	if bound == 0 {
		bound = defaultBound
	}
	for i := range want {
		fault := compareFast(&got[i], &want[i], bound)
		if mode == ops.Exact {
			fault = compareExact(&got[i], &want[i])
		}
		if fault != "" {
			return fmt.Sprintf("row %d: %s", i, fault)
		}
	}
	return ""
}

func compareExact(got, want *ops.Head) string {
	if got.Best != want.Best || math.Float32bits(got.Max) != math.Float32bits(want.Max) || math.Float32bits(got.LogSumExp) != math.Float32bits(want.LogSumExp) {
		return fmt.Sprintf("best token %d of %v and log-sum-exp %v, want %d of %v and %v", got.Best, got.Max, got.LogSumExp, want.Best, want.Max, want.LogSumExp)
	}
	if got.Stats != want.Stats {
		return fmt.Sprintf("statistics %+v, want %+v", got.Stats, want.Stats)
	}
	if len(want.IDs) == 0 {
		return sameBits("logit", got.Row, want.Row)
	}
	for i := range want.IDs {
		if i >= len(got.IDs) || got.IDs[i] != want.IDs[i] {
			return fmt.Sprintf("best tokens %v, want %v", got.IDs, want.IDs)
		}
	}
	return sameBits("best logit", got.Logits, want.Logits)
}

func sameBits(what string, got, want []float32) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d values of %s, want %d", len(got), what, len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			return fmt.Sprintf("%s %d is %v, want %v", what, i, got[i], want[i])
		}
	}
	return ""
}

// compareFast allows what bound says. What the device tells of a row that it gives as well
// must be true of that row; of others it must be near the truth.
func compareFast(got, want *ops.Head, bound float64) string {
	mean := meanSquare(want.Row)
	if len(want.IDs) > 0 {
		return compareBest(got, want, math.Sqrt(fastPart*bound*mean))
	}
	if len(got.Row) != len(want.Row) {
		return fmt.Sprintf("%d logits, want %d", len(got.Row), len(want.Row))
	}
	for at := 0; at < len(want.Row); at += fastPart {
		end := min(at+fastPart, len(want.Row))
		var diff float64
		for i := at; i < end; i++ {
			d := float64(got.Row[i]) - float64(want.Row[i])
			diff += d * d / float64(end-at)
		}
		if !(diff <= bound*mean) { // nor NaN
			return fmt.Sprintf("logits %d to %d differ by %.3g of their mean square, %.3g is allowed", at, end-1, diff/mean, bound)
		}
	}
	best, lse := summary(got.Row)
	if got.Best != best || got.Max != got.Row[best] || !(math.Abs(float64(got.LogSumExp)-lse) <= lseBound*(1+math.Abs(lse))) {
		return fmt.Sprintf("best token %d of %v and log-sum-exp %v, the row has %d of %v and %v", got.Best, got.Max, got.LogSumExp, best, got.Row[best], lse)
	}
	return ""
}

// compareBest looks at a head without its row. All logits are off by at most off.
func compareBest(got, want *ops.Head, off float64) string {
	near := func(id int32, logit, least float32) bool {
		return id >= 0 && int(id) < len(want.Row) && math.Abs(float64(logit)-float64(want.Row[id])) <= off && float64(logit) >= float64(least)-off
	}
	if !near(got.Best, got.Max, want.Max) || !(math.Abs(float64(got.LogSumExp)-float64(want.LogSumExp)) <= off+lseBound*(1+math.Abs(float64(want.LogSumExp)))) {
		return fmt.Sprintf("best token %d of %v and log-sum-exp %v, want %d of %v and %v", got.Best, got.Max, got.LogSumExp, want.Best, want.Max, want.LogSumExp)
	}
	if fault := compareStats(&got.Stats, &want.Stats, off); fault != "" {
		return fault
	}
	if len(got.IDs) != len(want.IDs) || len(got.Logits) != len(want.IDs) {
		return fmt.Sprintf("%d best tokens, want %d", len(got.IDs), len(want.IDs))
	}
	seen := map[int32]bool{}
	for i, id := range got.IDs {
		if !near(id, got.Logits[i], want.Logits[i]) || seen[id] || (i > 0 && got.Logits[i] > got.Logits[i-1]) {
			return fmt.Sprintf("best tokens %v of %v, want %v of %v", got.IDs, got.Logits, want.IDs, want.Logits)
		}
		seen[id] = true
	}
	if got.IDs[0] != got.Best || got.Logits[0] != got.Max {
		return fmt.Sprintf("best token %d of %v, first of the best %d of %v", got.Best, got.Max, got.IDs[0], got.Logits[0])
	}
	return ""
}

// compareStats looks at statistics of logits that are off by at most off: so are most of
// them; an entropy is a mean of numbers that are off by twice as much, under weights that
// are.
func compareStats(got, want *rowstats.Stats, off float64) string {
	near := func(got, want float32, off float64) bool {
		return math.Abs(float64(got)-float64(want)) <= off+lseBound*(1+math.Abs(float64(want)))
	}
	if got.Finite != want.Finite || !near(got.Max, want.Max, off) || !near(got.Mean, want.Mean, off) || !near(got.Std, want.Std, 2*off) ||
		!near(got.LogSumExp, want.LogSumExp, off) || !near(got.Entropy, want.Entropy, 4*off*(1+float64(want.Entropy))) {
		return fmt.Sprintf("statistics %+v, want %+v", *got, *want)
	}
	return ""
}

func meanSquare(row []float32) (mean float64) {
	for _, w := range row {
		mean += float64(w) * float64(w) / float64(len(row))
	}
	return mean
}

// summary is the best token of a row, the lowest of equals, and the log-sum-exp.
func summary(row []float32) (best int32, lse float64) {
	for i, v := range row {
		if v > row[best] {
			best = int32(i)
		}
	}
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v) - float64(row[best]))
	}
	return best, float64(row[best]) + math.Log(sum)
}
