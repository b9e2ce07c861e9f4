package tensor

// The ternary formats: 256 values −1, 0, 1 under one f16 scale.

// powers3 are the multipliers that bring digit n of a TQ1_0 byte to the front.
var powers3 = [5]byte{1, 3, 9, 27, 81}

// trit returns digit n, less one, of a byte that holds a number below 3⁵ as a fraction
// of 256: multiplying by 3ⁿ drops the digits before it (the product wraps at 256), and
// the carry of a further ·3 is the digit.
func trit(b byte, n int) int8 {
	b *= powers3[n]
	return int8(uint16(b)*3>>8) - 1
}

// decodeTQ1_0: 48 bytes of five digits each, 4 bytes of four digits, f16 d; x = d·q.
// Values 0…159 are digits 0…4 of bytes 0…31, values 160…239 those of bytes 32…47,
// values 240…255 digits 0…3 of the last four bytes.
func decodeTQ1_0(codes []int8, scales, _ []float32, src []byte) {
	fill(scales, half(src[52:]))
	put := func(codes []int8, run []byte, digits int) {
		for n := range digits {
			for j, b := range run {
				codes[len(run)*n+j] = trit(b, n)
			}
		}
	}
	put(codes, src[:32], 5)
	put(codes[160:], src[32:48], 5)
	put(codes[240:], src[48:52], 4)
}

// decodeTQ2_0: 64 bytes of bit pairs, f16 d; x = d·(q−1). 32 bytes hold 128 values:
// pair p of byte j is value 32p + j. The unused pair 3 stands for 2.
func decodeTQ2_0(codes []int8, scales, _ []float32, src []byte) {
	fill(scales, half(src[64:]))
	for i := range codes {
		b := src[32*(i/128)+i%32]
		codes[i] = int8(b>>(2*(i/32%4))&3) - 1
	}
}

func fill(scales []float32, d float32) {
	for i := range scales {
		scales[i] = d
	}
}
