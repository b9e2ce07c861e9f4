package opstest

import (
	"fmt"
	"math"

	"ganglion/gpu/ops"
)

// tolerance bounds the error of one output as a multiple of the magnitude of its
// terms, which the oracle gives.
//
// exact: float32 rounds to 2⁻²⁴ of a value. A term of an output passes at most r
// roundings on its way, so the error is at most r·2⁻²⁴·Σ|term| (Higham, Accuracy and
// Stability of Numerical Algorithms, 3.1, to first order).
//
// Where exact mode rounds a value to a half (attention's probabilities over a cache of
// halves, GELU), the definition keeps the value and the bound grows by half the distance
// of halves there: the value before differs in its last bits from the definition's and
// may fall on the other side of a tie. What is rounded on its way in (queries, GELU's
// argument) is known exactly, so the definition rounds it.
//
// fast: activations may be rounded to 8 bits before a product of a matrix, to 16 bits
// anywhere else.
type tolerance struct {
	exact, fast float64
}

// of is the bound of a mode.
func (t tolerance) of(n ops.Numerics) float64 {
	if n == ops.Exact {
		return t.exact
	}
	return t.fast
}

const (
	unit = 1.0 / (1 << 24) // half the distance of float32 values around 1
	half = 1.0 / (1 << 11) // of halves

	smallestHalf = 1.0 / (1 << 14) // with all its digits

	// fast8 bounds a dot product with 8-bit activations in units of √Σw²·max|x|:
	// each activation errs by at most 1/254 of the largest, evenly distributed, which
	// is a standard deviation of 1/(254·√3); the sum of n of them stays within six
	// standard deviations.
	fast8 = 6.0 / (254 * 1.7320508)

	// functionRoundings is what an elementary function of gpu/ops costs: the
	// polynomials err by less than 4 units, their argument and the products around
	// them by as much again.
	functionRoundings = 16
)

// wholeRounding is how far an activation that exact mode rounds to a whole number may be
// off, in units of the largest magnitude of its block, which stands for 2²¹ or more of
// these numbers: half a number.
const wholeRounding = 0.5 / (1 << 21) / unit

// laneRoundings is the longest way of a term through a sum of n elements in 16 lanes:
// its product, n/16 additions, 4 foldings, a bias, a scale. A product with whole numbers
// has less: the sum over a group is rounded once, and 8 lanes take two groups of 16 of 32
// columns, each at most twice, which is n/64 additions.
func laneRoundings(n int) float64 { return float64(n/16) + 8 }

// The table of tolerances by kind of operation; n is the length of its dot product.

func matMulTolerance(n int) tolerance {
	return tolerance{laneRoundings(n) * unit, fast8}
}

func elementwiseTolerance() tolerance {
	return tolerance{4 * unit, 2 * half}
}

func functionTolerance() tolerance {
	return tolerance{functionRoundings * unit, 4 * half}
}

func normTolerance(n int) tolerance {
	return tolerance{(laneRoundings(n) + functionRoundings) * unit, 4 * half}
}

// attentionTolerance is for keys of n columns; a chunk adds up to 256 values in one
// accumulator. Fast mode may keep queries, scores and probabilities as halves.
func attentionTolerance(n int) tolerance {
	return tolerance{(laneRoundings(n) + functionRoundings + 256) * unit, 8 * half}
}

// scanTolerance is for a state dimension of n and a sequence of t positions: each
// step adds its own roundings to the state.
func scanTolerance(n, t int) tolerance {
	return tolerance{(laneRoundings(n) + functionRoundings) * float64(t) * unit, 8 * half}
}

// mismatch remembers the error that is largest in units of its bound.
type mismatch struct {
	ratio            float64
	seq, pos, col    int
	got, want, bound float64
	wrong, total     int
}

func (m *mismatch) add(seq, pos, col int, got, want, bound float64) {
	m.total++
	diff := math.Abs(got - want)
	if diff <= bound {
		return
	}
	m.wrong++
	ratio := diff / math.Max(bound, math.SmallestNonzeroFloat32)
	if math.IsNaN(diff) {
		ratio = math.Inf(1)
	}
	if ratio > m.ratio {
		m.ratio, m.seq, m.pos, m.col, m.got, m.want, m.bound = ratio, seq, pos, col, got, want, bound
	}
}

func (m *mismatch) err() error {
	if m.wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d values are wrong; the worst at sequence %d, position %d, column %d: got %v, want %v, off by %.3g where %.3g is allowed",
		m.wrong, m.total, m.seq, m.pos, m.col, m.got, m.want, math.Abs(m.got-m.want), m.bound)
}
