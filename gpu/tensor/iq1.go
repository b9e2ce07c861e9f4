package tensor

import "encoding/binary"

// The IQ1 formats: 256 values in runs of 8, each run an index into a book of 2,048
// points with digits −1, 0, 1, all shifted up or down by ⅛.

// putIQ1 writes the 8 codes of a grid entry, eight times (digit ± ⅛).
func putIQ1(codes []int8, entry uint16, shift int8) {
	for j := range 8 {
		codes[j] = 8*(int8(entry>>(2*j)&3)-1) + shift
	}
}

// iq1Shift returns eight times ⅛ with the sign of the shift bit.
func iq1Shift(down bool) int8 {
	if down {
		return -1
	}
	return 1
}

// decodeIQ1_S: f16 d, 32 low index bytes, 8 u16 for the groups of 32: four times 3
// high index bits, 3 bits of scale, the shift's sign; scale d·(2s+1).
func decodeIQ1_S(codes []int8, scales, _ []float32, src []byte) {
	d := half(src)
	qs, high := src[2:34], src[34:50]
	for g := range 8 {
		h := binary.LittleEndian.Uint16(high[2*g:])
		scales[2*g] = d * float32(2*(h>>12&7)+1) * 0.125
		scales[2*g+1] = scales[2*g]
		shift := iq1Shift(h&0x8000 != 0)
		for k := range 4 {
			index := uint16(qs[4*g+k]) | h>>(3*k)&7<<8
			putIQ1(codes[32*g+8*k:], gridIQ1S[index], shift)
		}
	}
}

// decodeIQ1_M: 32 low index bytes, 16 bytes with a nibble per run (3 high index bits,
// the shift's sign), 4 u16 with four 3-bit scales of the groups of 16 each and, in
// their top nibbles, the f16 d, lowest nibble first; scale d·(2s+1).
func decodeIQ1_M(codes []int8, scales, _ []float32, src []byte) {
	qs, high := src[:32], src[32:48]
	var words [4]uint16
	var dBits uint16
	for i := range words {
		words[i] = binary.LittleEndian.Uint16(src[48+2*i:])
		dBits |= words[i] >> 12 << (4 * i)
	}
	d := F16ToF32(dBits)
	for k := range 32 {
		group := k / 2
		scales[group] = d * float32(2*(words[group/4]>>(3*(group%4))&7)+1) * 0.125
		h := high[group] >> (4 * (k % 2))
		index := uint16(qs[k]) | uint16(h&7)<<8
		putIQ1(codes[8*k:], gridIQ1S[index], iq1Shift(h&8 != 0))
	}
}
