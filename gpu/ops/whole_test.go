package ops

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"ganglion/gpu/tensor"
)

// TestRoundBlock checks single blocks whose other values are zeros.
func TestRoundBlock(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	tests := []struct {
		name  string
		x     []float32
		scale float32
		whole []int32
	}{
		{"ones", []float32{1, -1, 0.5}, 1.0 / (1 << 21), []int32{1 << 21, -1 << 21, 1 << 20}},
		{"largest below two", []float32{math.Nextafter32(2, 0)}, 1.0 / (1 << 21), []int32{1 << 22}},
		{"largest is negative", []float32{-3, 1}, 1.0 / (1 << 20), []int32{-3 << 20, 1 << 20}},
		{"ties to even", []float32{1, 0.5 / (1 << 21), 1.5 / (1 << 21), -2.5 / (1 << 21)}, 1.0 / (1 << 21), []int32{1 << 21, 0, 2, -2}},
		{"far below the largest", []float32{1 << 20, 1e-30}, 0.5, []int32{1 << 21, 0}},
		{"smallest that counts", []float32{0x1p-60}, 0x1p-81, []int32{1 << 21}},
		{"too small", []float32{math.Nextafter32(0x1p-60, 0)}, 0, []int32{0}},
		{"subnormal", []float32{1e-40}, 0, []int32{0}},
		{"zeros", []float32{0, float32(math.Copysign(0, -1))}, 0, []int32{0}},
		{"largest float", []float32{math.MaxFloat32, 1}, 0x1p106, []int32{1 << 22, 0}},
		{"infinity", []float32{1, inf}, nan, []int32{0}},
		{"minus infinity", []float32{1, -inf}, nan, []int32{0}},
		{"NaN", []float32{1, nan, inf}, nan, []int32{0}},
	}
	for _, c := range tests {
		x, whole := make([]float32, WholeBlock), make([]int32, WholeBlock)
		whole[31] = 99 // what a block before left
		copy(x, c.x)
		scale := RoundBlock(whole, x)
		if scale != c.scale && !(scale != scale && c.scale != c.scale) {
			t.Errorf("%s: scale: got %v, want %v", c.name, scale, c.scale)
		}
		for i, got := range whole {
			want := int32(0)
			if i < len(c.whole) {
				want = c.whole[i]
			}
			if got != want {
				t.Errorf("%s: number %d: got %d, want %d", c.name, i, got, want)
			}
		}
	}
}

// wholeRow draws a weight row of moderate scale and activations whose magnitudes differ
// by some powers of ten.
func wholeRow(r *rand.Rand, typ tensor.Type, cols int) (row CodeRow, dense, x []float32) {
	size := typ.BlockSize()
	data := make([]byte, cols/size*typ.BlockBytes())
	dense = make([]float32, cols)
	for b := range cols / size {
		block := data[b*typ.BlockBytes():][:typ.BlockBytes()]
		for largest := 0.0; !(largest > 0.01 && largest < 10); {
			for i := range block {
				block[i] = byte(r.Uint32())
			}
			if err := tensor.Dequantize(typ, dense[b*size:][:size], block); err != nil {
				panic(err)
			}
			largest = 0
			for _, v := range dense[b*size:][:size] {
				if a := math.Abs(float64(v)); a > largest || a != a {
					largest = a
				}
			}
		}
	}
	if err := row.Decode(typ, cols, data); err != nil {
		panic(err)
	}
	for range cols {
		x = append(x, float32(r.NormFloat64())*float32(1+r.IntN(3)*10))
	}
	return row, dense, x
}

// TestWholeDot compares every type with float64, and holds the bits by a fingerprint:
// they must not change with the machine, and a change of the code that moves a bit changes
// every logged request.
func TestWholeDot(t *testing.T) {
	const cols = 1024
	h := fnv.New64a()
	for _, typ := range tensor.Types() {
		if typ.Group() == 0 {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(typ), 7))
		for range 20 {
			row, dense, x := wholeRow(r, typ, cols)
			var whole WholeRow
			whole.Round(x)
			got := row.Dot(&whole)
			want, bound := 0.0, 0.0
			for i, w := range dense {
				want += float64(w) * float64(x[i])
				size := math.Abs(float64(row.Scales[i/row.Group]) * float64(row.Codes[i]))
				if len(row.Mins) > 0 {
					size += math.Abs(float64(row.Mins[i/row.Group]))
				}
				largest := 0.0
				for _, v := range x[i/WholeBlock*WholeBlock:][:WholeBlock] {
					largest = max(largest, math.Abs(float64(v)))
				}
				bound += (float64(cols/64+8)*size*math.Abs(float64(x[i])) + 4*math.Abs(float64(w))*largest) / (1 << 24)
			}
			if diff := math.Abs(float64(got) - want); !(diff <= bound) {
				t.Errorf("%v: got %v, want %v, off by %.3g where %.3g is allowed", typ, got, want, diff, bound)
			}
			bits := math.Float32bits(got)
			h.Write([]byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)})
		}
	}
	if got, want := h.Sum64(), uint64(0x2cf33a23432665c0); got != want {
		t.Errorf("the bits of the products: fingerprint %#x, want %#x", got, want)
	}
}

// TestWholeDotBounds takes the largest numbers there are: the sums are exact in the two
// halves that a kernel may split them into, and the rounding is one.
func TestWholeDotBounds(t *testing.T) {
	row := CodeRow{Group: WholeBlock, Codes: make([]int8, WholeBlock), Scales: []float32{1}, Mins: []float32{}}
	x := make([]float32, WholeBlock)
	for i := range x {
		row.Codes[i] = -128
		x[i] = math.Nextafter32(2, 0)
	}
	x[7] = math.Nextafter32(1, 0) // an odd sum
	var whole WholeRow
	whole.Round(x)
	sum, total := groupSums(row.Codes, whole.X)
	var high, low, exact int64
	for i, v := range whole.X {
		hi := (v + 2048) >> 12
		high += int64(row.Codes[i]) * int64(hi)
		low += int64(row.Codes[i]) * int64(v-hi<<12)
		exact += int64(v)
	}
	if sum != 4096*high+low || total != exact || -sum > 1<<34 {
		t.Errorf("the sum of codes times activations is %d, in halves %d·4096 + %d", sum, high, low)
	}
	if max(-high, -low) > 1<<24 {
		t.Errorf("the halves %d and %d are not exact as float32", high, low)
	}
	fused := float32(float64(float32(high))*4096 + float64(float32(low))) // one rounding
	if float32(sum) != fused || fused != float32(float32(high)*4096)+float32(low) {
		t.Errorf("%d rounds to %v, from its halves to %v", sum, float32(sum), fused)
	}
	if got, want := row.Dot(&whole), float32(sum)/(1<<21); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A block that is not finite shows in the product even where all codes are 0, and beside
// blocks that are.
func TestWholeDotNotFinite(t *testing.T) {
	row := CodeRow{Group: WholeBlock, Codes: make([]int8, 12*WholeBlock), Scales: make([]float32, 12)}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		x := make([]float32, len(row.Codes))
		x[300] = float32(bad)
		var whole WholeRow
		whole.Round(x)
		if got := row.Dot(&whole); got == got {
			t.Errorf("an activation of %v gives %v", bad, got)
		}
	}
}

// Scales of MXFP4 too small to be of use are 0, the others are what they are.
func TestSmallestE8M0(t *testing.T) {
	block := make([]byte, tensor.MXFP4.BlockBytes())
	for e, want := range map[byte]float32{0: 0, 82: 0, 83: SmallestE8M0, 255: 0x1p127} {
		block[0] = e
		var row CodeRow
		if err := row.Decode(tensor.MXFP4, 32, block); err != nil {
			t.Fatal(err)
		}
		if row.Scales[0] != want {
			t.Errorf("scale %d: got %v, want %v", e, row.Scales[0], want)
		}
	}
}
