package tensor

import "encoding/binary"

// The IQ4 formats: nibbles that stand for 16 levels, denser around zero.

// iq4Levels are the values a nibble stands for.
var iq4Levels = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// decodeIQ4_NL: f16 d, 16 bytes of nibbles as in Q4_0; x = d·level.
func decodeIQ4_NL(codes []int8, scales, _ []float32, src []byte) {
	scales[0] = half(src)
	for j, b := range src[2:18] {
		codes[j] = iq4Levels[b&15]
		codes[j+16] = iq4Levels[b>>4]
	}
}

// decodeIQ4_XS: f16 d, u16 with the high pairs and 4 bytes with the low nibbles of the
// 6-bit scales of the 8 groups of 32, 128 bytes of nibbles; x = (d·(sc−32))·level.
// A group's 16 bytes are laid out as in Q4_0.
func decodeIQ4_XS(codes []int8, scales, _ []float32, src []byte) {
	d := half(src)
	high := binary.LittleEndian.Uint16(src[2:])
	low, qs := src[4:8], src[8:136]
	for g := range 8 {
		sc := low[g/2]>>(4*(g%2))&15 | byte(high>>(2*g)&3)<<4
		scales[g] = d * float32(int(sc)-32)
		for j, b := range qs[16*g:][:16] {
			codes[32*g+j] = iq4Levels[b&15]
			codes[32*g+j+16] = iq4Levels[b>>4]
		}
	}
}
