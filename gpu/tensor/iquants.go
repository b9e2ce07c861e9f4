package tensor

import (
	"encoding/binary"
	"math/bits"
)

// The IQ2 and IQ3 formats: 256 values as indices into a book of grid points (8 values
// in IQ2, 4 in IQ3, all positive) and a sign per value, in groups with a 4-bit scale
// under one f16 scale. The books are in grids.go.

// iq2Levels and iq3xxsLevels are the magnitudes the digits of a grid entry stand for.
// IQ3_S has the odd numbers 1…15, computed as 2·digit+1.
var (
	iq2Levels    = [4]int8{0x08, 0x19, 0x2b}
	iq3xxsLevels = [8]int8{0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3e}
)

// evenSigns completes 7 sign bits by an eighth that makes the number of minus signs
// even.
func evenSigns(seven uint32) byte {
	s := byte(seven & 127)
	return s | byte(bits.OnesCount8(s))<<7
}

// signed returns x with its sign turned where bit j of signs is set.
func signed(x int8, signs byte, j int) int8 {
	if signs>>j&1 != 0 {
		return -x
	}
	return x
}

// putIQ2 writes the 8 codes of a grid entry of 2-bit digits.
func putIQ2(codes []int8, entry uint16, signs byte) {
	for j := range 8 {
		codes[j] = signed(iq2Levels[entry>>(2*j)&3], signs, j)
	}
}

// iq2Scale is the scale of an IQ2 group: d·(½+s)·¼, rounded at each step.
func iq2Scale(d float32, s byte) float32 { return float32(d*(0.5+float32(s&15))) * 0.25 }

// decodeIQ2_XXS: f16 d, 8 groups of 32: four index bytes, then a u32 with four times 7
// sign bits and the scale in its top four.
func decodeIQ2_XXS(codes []int8, scales, _ []float32, src []byte) {
	d := half(src)
	for g := range 8 {
		b := src[2+8*g:][:8]
		word := binary.LittleEndian.Uint32(b[4:])
		scales[2*g] = iq2Scale(d, byte(word>>28))
		scales[2*g+1] = scales[2*g]
		for k := range 4 {
			putIQ2(codes[32*g+8*k:], gridIQ2XXS[b[k]], evenSigns(word>>(7*k)))
		}
	}
}

// decodeIQ2_XS: f16 d, 32 u16 (9 bits of index, 7 of sign), 8 bytes with the scales of
// the 16 groups of 16, low nibble first.
func decodeIQ2_XS(codes []int8, scales, _ []float32, src []byte) {
	d := half(src)
	qs, nibbles := src[2:66], src[66:74]
	for k := range 32 {
		q := binary.LittleEndian.Uint16(qs[2*k:])
		scales[k/2] = iq2Scale(d, nibbles[k/4]>>(4*(k/2%2)))
		putIQ2(codes[8*k:], gridIQ2XS[q&511], evenSigns(uint32(q>>9)))
	}
}

// decodeIQ2_S: f16 d, 32 low index bytes, 32 sign bytes, 8 bytes of high index pairs,
// 8 bytes with the scales of the 16 groups of 16, low nibble first.
func decodeIQ2_S(codes []int8, scales, _ []float32, src []byte) {
	d := half(src)
	qs, signs, high, nibbles := src[2:34], src[34:66], src[66:74], src[74:82]
	for k := range 32 {
		index := uint16(qs[k]) | uint16(high[k/4]>>(2*(k%4))&3)<<8
		scales[k/2] = iq2Scale(d, nibbles[k/4]>>(4*(k/2%2)))
		putIQ2(codes[8*k:], gridIQ2S[index], signs[k])
	}
}

// decodeIQ3_XXS: f16 d, 64 index bytes, then for each of the 8 groups of 32 a u32 with
// four times 7 sign bits and the scale in its top four; scale d·(½+s)·½.
func decodeIQ3_XXS(codes []int8, scales, _ []float32, src []byte) {
	d := half(src)
	qs, words := src[2:66], src[66:98]
	for g := range 8 {
		word := binary.LittleEndian.Uint32(words[4*g:])
		scales[2*g] = float32(d*(0.5+float32(word>>28))) * 0.5
		scales[2*g+1] = scales[2*g]
		for j := range 32 {
			digit := gridIQ3XXS[qs[8*g+j/4]] >> (4 * (j % 4)) & 7
			signs := evenSigns(word >> (7 * (j / 8)))
			codes[32*g+j] = signed(iq3xxsLevels[digit], signs, j%8)
		}
	}
}

// decodeIQ3_S: f16 d, 64 low index bytes, 8 bytes of ninth index bits, 32 sign bytes,
// 4 bytes with the scales of the 8 groups of 32, low nibble first; scale d·(1+2s).
func decodeIQ3_S(codes []int8, scales, _ []float32, src []byte) {
	d := half(src)
	qs, high, signs, nibbles := src[2:66], src[66:74], src[74:106], src[106:110]
	for g := range 8 {
		scales[2*g] = d * float32(1+2*(nibbles[g/2]>>(4*(g%2))&15))
		scales[2*g+1] = scales[2*g]
		for j := range 32 {
			k := 8*g + j/4
			entry := gridIQ3S[uint16(qs[k])|uint16(high[g]>>(j/4)&1)<<8]
			level := int8(2*(entry>>(4*(j%4))&7) + 1)
			codes[32*g+j] = signed(level, signs[4*g+j/8], j%8)
		}
	}
}
