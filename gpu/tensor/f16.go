package tensor

import "math"

// F16ToF32 widens an IEEE binary16. Every value is exact; a NaN keeps its payload.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	man := uint32(h & 0x3ff)
	switch exp {
	case 0:
		// Zero or subnormal: man · 2⁻²⁴. The product is exact, and an integer times a
		// normal power of two stays right in threads that flush subnormals to zero.
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | man<<13)
}

// F32ToF16 rounds to the nearest IEEE binary16, ties to even. Too large values become
// infinite, too small ones zero or subnormal; a NaN becomes a quiet NaN.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN: the upper payload bits stay, the quiet bit is set
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x477ff000: // 65520 is the tie between 65504 and the next, which is infinite
		return sign | 0x7c00
	case b < 0x33000001: // up to 2⁻²⁵, the tie between 0 and the smallest subnormal
		return sign
	case b < 0x38800000: // below 2⁻¹⁴: subnormal, the exponent is fixed at 2⁻²⁴
		shift := 126 - b>>23 // 14…24 bits fall off the 24-bit significand
		man := b&0x7fffff | 0x800000
		return sign | uint16(roundShift(man, shift))
	}
	// A carry out of the significand moves into the exponent, which is what rounding up
	// to the next power of two means.
	return sign | uint16(roundShift(b-(127-15)<<23, 13))
}

// roundShift returns v / 2^shift rounded to nearest, ties to even.
func roundShift(v, shift uint32) uint32 {
	half := uint32(1)<<(shift-1) - 1
	return (v + half + v>>shift&1) >> shift
}

// BF16ToF32 widens a bfloat16: the upper half of a float32.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to the nearest bfloat16, ties to even; a NaN becomes a quiet NaN.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16(roundShift(b, 16))
}
