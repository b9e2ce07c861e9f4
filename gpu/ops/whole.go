package ops

import (
	"math"

	"ganglion/gpu/tensor"
)

// Products with weights of whole numbers in exact mode (gpu/DESIGN.md, rule 2): all
// block formats of gpu/tensor, that is every type with a Group. Activations become whole
// numbers too, so that the sum over a group of columns has no rounding and no order; a
// kernel may split it among lanes, digits and instructions as it likes.

const (
	// WholeBlock is the number of columns whose activations share a scale.
	WholeBlock = 32
	// WholeLanes is the number of lanes of the sum over blocks: block b belongs to
	// lane b mod WholeLanes.
	WholeLanes = 8
)

// WholeRow is a row of activations as whole numbers: activation i is about
// Scales[i/WholeBlock]·X[i], and |X[i]| ≤ 2²².
type WholeRow struct {
	X      []int32
	Scales []float32
}

// Round rounds the activations x, whose number is a multiple of WholeBlock. It reuses
// the memory of the row.
func (r *WholeRow) Round(x []float32) {
	r.X = append(r.X[:0], make([]int32, len(x))...)
	r.Scales = r.Scales[:0]
	for i := 0; i < len(x); i += WholeBlock {
		r.Scales = append(r.Scales, RoundBlock(r.X[i:i+WholeBlock], x[i:i+WholeBlock]))
	}
}

// RoundBlock rounds WholeBlock activations to whole numbers and returns what they are
// multiples of: the power of two that brings the largest magnitude into [2²¹, 2²²]. A
// block whose largest magnitude is below 2⁻⁶⁰ counts as zeros. One with a NaN or an
// infinity has the scale NaN, so that it shows in the product whatever the weights are.
func RoundBlock(whole []int32, x []float32) (scale float32) {
	var m uint32 // magnitudes are compared as bits: NaN is above all
	for _, v := range x {
		m = max(m, math.Float32bits(v)&0x7fffffff)
	}
	clear(whole)
	e := m >> 23
	switch {
	case e == 255:
		return float32(math.NaN())
	case e < 67:
		return 0
	}
	up := math.Float32frombits((275 - e) << 23) // 2^(148−e)
	for i, v := range x {
		const magic = 12582912 // 1.5·2²³: adding it rounds to the nearest whole number
		whole[i] = int32(float32(v*up) + magic - magic)
	}
	return math.Float32frombits((e - 21) << 23)
}

// CodeRow is one row of a weight of whole numbers: tensor.Codes says what they mean.
type CodeRow struct {
	Group        int
	Codes        []int8
	Scales, Mins []float32 // no Mins where the type has none
}

// SmallestE8M0 is the least scale of MXFP4 that counts in exact mode; smaller ones are
// 0. It keeps every number of a product normal or zero, see gpu/DESIGN.md. No other type
// can have a scale as small.
const SmallestE8M0 = 1.0 / (1 << 45)

// Decode splits a row of cols values of type t. It reuses the memory of the row. The
// error is that of tensor.Codes.
func (r *CodeRow) Decode(t tensor.Type, cols int, src []byte) error {
	r.Group = t.Group()
	groups := 0
	if r.Group > 0 {
		groups = cols / r.Group
	}
	if len(r.Codes) != cols || len(r.Scales) != groups {
		r.Codes, r.Scales, r.Mins = make([]int8, cols), make([]float32, groups), make([]float32, groups)
	}
	mins := r.Mins[:cap(r.Mins)]
	if err := tensor.Codes(t, r.Codes, r.Scales, mins, src); err != nil {
		return err
	}
	r.Mins = mins[:0]
	if t.HasMin() {
		r.Mins = mins
	}
	for i, d := range r.Scales {
		if t == tensor.MXFP4 && d < SmallestE8M0 {
			r.Scales[i] = 0
		}
	}
	return nil
}

// Dot is the product of a weight row with a row of activations.
func (r *CodeRow) Dot(x *WholeRow) float32 {
	var l [WholeLanes]float32
	for i := 0; i < len(r.Codes); i += r.Group {
		block, g := i/WholeBlock, i/r.Group
		acc, s := &l[block%WholeLanes], x.Scales[block]
		sum, total := groupSums(r.Codes[i:i+r.Group], x.X[i:])
		*acc += float32(float32(sum) * float32(r.Scales[g]*s))
		if len(r.Mins) > 0 {
			*acc += float32(float32(total) * float32(r.Mins[g]*s))
		}
	}
	for n := WholeLanes / 2; n > 0; n /= 2 {
		for i := range n {
			l[i] += l[i+n]
		}
	}
	return l[0]
}

// groupSums is Σ q·X and Σ X over a group.
func groupSums(codes []int8, x []int32) (sum, total int64) {
	for i, q := range codes {
		sum += int64(q) * int64(x[i])
		total += int64(x[i])
	}
	return sum, total
}
