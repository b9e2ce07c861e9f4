package tensor

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// Random draws the bytes of so many values, whole blocks of them, for tests and for the
// known answers of devices. Plain types hold normally distributed values, blocks random
// bits: those whose largest value is not between 1/4 and 4 are drawn again, so every field
// of a block takes all values that a file of sane scale has.
func Random(r *rand.Rand, t Type, values int) []byte {
	block, scratch := make([]byte, t.BlockBytes()), make([]float32, t.BlockSize())
	data := make([]byte, 0, values/t.BlockSize()*t.BlockBytes())
	for range values / t.BlockSize() {
		switch x := float32(r.NormFloat64()); t {
		case F32:
			binary.LittleEndian.PutUint32(block, math.Float32bits(x))
		case F16:
			binary.LittleEndian.PutUint16(block, F32ToF16(x))
		case BF16:
			binary.LittleEndian.PutUint16(block, F32ToBF16(x))
		default:
			for draw(r, block); !sane(t, scratch, block); draw(r, block) {
			}
		}
		data = append(data, block...)
	}
	return data
}

func draw(r *rand.Rand, block []byte) {
	for i := range block {
		block[i] = byte(r.Uint32())
	}
}

// sane tells whether the largest value of a block is between 1/4 and 4, and none is NaN.
func sane(t Type, values []float32, block []byte) bool {
	if Dequantize(t, values, block) != nil {
		return false
	}
	largest := 0.0
	for _, v := range values {
		if a := math.Abs(float64(v)); a > largest || a != a { // NaN stays NaN
			largest = a
		}
	}
	return largest >= 0.25 && largest <= 4
}
