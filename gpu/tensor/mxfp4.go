package tensor

import "math"

// The 4-bit floating-point formats: nibbles are E2M1 numbers (sign, 2 bits of
// exponent, 1 of significand). The table holds twice their value, so that it is whole,
// and the scale functions return half the scale.

// e2m1Doubled are the E2M1 numbers times two. Nibble 8, minus zero, reads as zero.
var e2m1Doubled = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// decodeMXFP4: E8M0 scale, 16 bytes of nibbles as in Q4_0 (OCP MX v1.0, 5.3).
func decodeMXFP4(codes []int8, scales, _ []float32, src []byte) {
	scales[0] = halfE8M0(src[0])
	for j, b := range src[1:17] {
		codes[j] = e2m1Doubled[b&15]
		codes[j+16] = e2m1Doubled[b>>4]
	}
}

// halfE8M0 returns 2^(e−127)/2. The two smallest are subnormal. 255, NaN in the OCP
// specification, is 2¹²⁷ here as in the reference, which has no special case.
func halfE8M0(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

// decodeNVFP4: four UE4M3 scales of the groups of 16, then 8 bytes of nibbles for each
// group: value j in the low nibble of byte j, value j+8 in its high nibble. A further
// scale per tensor, where a file has one, is a tensor of its own and not applied here.
func decodeNVFP4(codes []int8, scales, _ []float32, src []byte) {
	for g := range 4 {
		scales[g] = halfUE4M3(src[g])
		for j, b := range src[4+8*g:][:8] {
			codes[16*g+j] = e2m1Doubled[b&15]
			codes[16*g+j+8] = e2m1Doubled[b>>4]
		}
	}
}

// halfUE4M3 returns half of an unsigned E4M3 number (exponent bias 7). 0x7f, its NaN,
// reads as zero; the top bit is not looked at otherwise, as in the reference.
func halfUE4M3(x byte) float32 {
	if x == 0x7f {
		return 0
	}
	exp, man := int(x>>3&15), float32(x&7)
	if exp == 0 {
		return man * (1.0 / (1 << 10))
	}
	return math.Float32frombits(uint32(exp-7-1+127)<<23) * ((8 + man) * 0.125)
}
