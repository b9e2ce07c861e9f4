package cpu

// Options chooses what New returns.
type Options struct {
	// Kernels names an instruction set, "plain" or "avx2"; empty takes the best one
	// that this machine has.
	Kernels string
}

// Scan computes statistics of rows of logits and finds the best of them, wherever the
// rows came from. It is what plugins/sampling takes as its Scanner, and what that package
// and rowstats define in Go (ScanMoments and the others) to the bit. Rows have at least one logit,
// other slices the lengths that are defined there, and none is kept. It is safe for
// concurrent use.
type Scan interface {
	// Moments sums (logit − pivot) and its square over the finite logits of a row, finds
	// the largest and fills the row's peaks.
	Moments(row []float32, pivot float32, peaks []float32) (count, largestAt int, first, second float64, positiveInf bool)
	// Mass sums the weights exp(logit − top) of a row and the weighted distances from top.
	Mass(row []float32, top float32) (sum, distance float64)
	// Limit returns a number that n of a row's peaks reach; spare has room for half of them.
	Limit(peaks []float32, n int, spare []float32) float32
	// Above writes the places of the finite logits that are at least limit, in order, and
	// returns how many there are.
	Above(found []int32, row, peaks []float32, limit float32) int
}
