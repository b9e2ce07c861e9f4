package tensor

// The K formats: 256 values in groups of 16 or 32, each group with its own small
// integer scale (and minimum), all under one f16 scale (and one f16 minimum).

// decodeQ2_K: 16 bytes of scale (low nibble) and minimum (high nibble) of the 16
// groups of 16, 64 bytes of 2-bit values, f16 d, f16 dmin; x = (d·sc)·q − dmin·mn.
// 32 bytes hold 128 values: bit pair p of byte j is value 32p + j.
func decodeQ2_K(codes []int8, scales, mins []float32, src []byte) {
	small, qs := src[:16], src[16:80]
	d, dmin := half(src[80:]), half(src[82:])
	for g, s := range small {
		scales[g], mins[g] = d*float32(s&15), -(dmin * float32(s>>4))
		q := qs[32*(g/8)+16*(g%2):][:16]
		shift := 2 * (g / 2 % 4)
		for j, out := range q {
			codes[16*g+j] = int8(out >> shift & 3)
		}
	}
}

// decodeQ3_K: 32 bytes of third bits, 64 bytes of 2-bit values (laid out as in Q2_K),
// 12 bytes of 6-bit scales of the 16 groups of 16, f16 d; x = (d·(sc−32))·q, where q
// is the 2-bit value, less 4 when its third bit is 0. Bit p of byte j of the third
// bits belongs to value 32p + j.
func decodeQ3_K(codes []int8, scales, _ []float32, src []byte) {
	high, qs, small := src[:32], src[32:96], src[96:108]
	d := half(src[108:])
	for g := range 16 {
		// Scale g: its low four bits are a nibble of bytes 0…7 (low nibbles first), its
		// high two a pair of bytes 8…11.
		sc := small[g%8]>>(4*(g/8))&15 | small[8+g%4]>>(2*(g/4))&3<<4
		scales[g] = d * float32(int(sc)-32)
		q := qs[32*(g/8)+16*(g%2):][:16]
		h := high[16*(g%2):][:16]
		shift := 2 * (g / 2 % 4)
		for j := range q {
			codes[16*g+j] = int8(q[j]>>shift&3) - 4 + int8(h[j]>>(g/2)&1)<<2
		}
	}
}

// scaleMin unpacks the 6-bit scale and minimum of group g of 8 from the 12 bytes that
// Q4_K and Q5_K share: groups 0…3 have theirs in the low six bits of bytes g and g+4;
// groups 4…7 have four bits in a nibble of byte g+4 and two atop bytes g−4 and g.
func scaleMin(s []byte, g int) (scale, minimum byte) {
	if g < 4 {
		return s[g] & 63, s[g+4] & 63
	}
	return s[g+4]&15 | s[g-4]>>6<<4, s[g+4]>>4 | s[g]>>6<<4
}

// decodeQ4_K: f16 d, f16 dmin, 12 bytes of scales and minima of the 8 groups of 32,
// 128 bytes of nibbles; x = (d·sc)·q − dmin·mn. 32 bytes hold two groups: the first in
// the low nibbles, the second in the high ones.
func decodeQ4_K(codes []int8, scales, mins []float32, src []byte) {
	d, dmin := half(src), half(src[2:])
	small, qs := src[4:16], src[16:144]
	for g := range 8 {
		sc, mn := scaleMin(small, g)
		scales[g], mins[g] = d*float32(sc), -(dmin * float32(mn))
		for j, b := range qs[32*(g/2):][:32] {
			codes[32*g+j] = int8(b >> (4 * (g % 2)) & 15)
		}
	}
}

// decodeQ5_K: as Q4_K with 32 bytes of fifth bits before the nibbles: bit g of byte j
// belongs to value j of group g.
func decodeQ5_K(codes []int8, scales, mins []float32, src []byte) {
	d, dmin := half(src), half(src[2:])
	small, high, qs := src[4:16], src[16:48], src[48:176]
	for g := range 8 {
		sc, mn := scaleMin(small, g)
		scales[g], mins[g] = d*float32(sc), -(dmin * float32(mn))
		for j, b := range qs[32*(g/2):][:32] {
			codes[32*g+j] = int8(b>>(4*(g%2))&15 | high[j]>>g&1<<4)
		}
	}
}

// decodeQ6_K: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales
// of the groups of 16, f16 d; x = (d·sc)·(q−32). 64 low and 32 high bytes hold 128
// values in four runs of 32: run r has its nibbles in bytes 32·(r mod 2)… (low nibbles
// for runs 0 and 1, high for 2 and 3) and its pairs at bits 2r.
func decodeQ6_K(codes []int8, scales, _ []float32, src []byte) {
	low, high, small := src[:128], src[128:192], src[192:208]
	d := half(src[208:])
	for r := range 8 {
		scales[2*r], scales[2*r+1] = d*float32(int8(small[2*r])), d*float32(int8(small[2*r+1]))
		l := low[64*(r/4)+32*(r%2):][:32]
		h := high[32*(r/4):][:32]
		for j := range 32 {
			codes[32*r+j] = int8(l[j]>>(4*(r/2%2))&15|h[j]>>(2*(r%4))&3<<4) - 32
		}
	}
}
