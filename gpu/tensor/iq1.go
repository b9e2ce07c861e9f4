package tensor

import "encoding/binary"

// The IQ1 formats: 256 values in runs of 8, each run an index into a book of 2,048
// points with digits −1, 0, 1, all shifted up or down by ⅛.

const iq1Delta = 0.125

// putIQ1 writes the 8 values of a grid entry: scale·(digit + delta).
func putIQ1(dst []float32, scale float32, entry uint16, delta float32) {
	for j := range 8 {
		dst[j] = scale * (float32(int(entry>>(2*j)&3)-1) + delta)
	}
}

// iq1Shift returns ⅛ with the sign of the shift bit.
func iq1Shift(down bool) float32 {
	if down {
		return -iq1Delta
	}
	return iq1Delta
}

// decodeIQ1_S: f16 d, 32 low index bytes, 8 u16 for the groups of 32: four times 3
// high index bits, 3 bits of scale, the shift's sign; scale d·(2s+1).
func decodeIQ1_S(dst []float32, src []byte) {
	d := half(src)
	qs, high := src[2:34], src[34:50]
	for g := range 8 {
		h := binary.LittleEndian.Uint16(high[2*g:])
		scale := d * float32(2*(h>>12&7)+1)
		delta := iq1Shift(h&0x8000 != 0)
		for k := range 4 {
			index := uint16(qs[4*g+k]) | h>>(3*k)&7<<8
			putIQ1(dst[32*g+8*k:], scale, gridIQ1S[index], delta)
		}
	}
}

// decodeIQ1_M: 32 low index bytes, 16 bytes with a nibble per run (3 high index bits,
// the shift's sign), 4 u16 with four 3-bit scales of the groups of 16 each and, in
// their top nibbles, the f16 d, lowest nibble first; scale d·(2s+1).
func decodeIQ1_M(dst []float32, src []byte) {
	qs, high := src[:32], src[32:48]
	var scales [4]uint16
	var dBits uint16
	for i := range scales {
		scales[i] = binary.LittleEndian.Uint16(src[48+2*i:])
		dBits |= scales[i] >> 12 << (4 * i)
	}
	d := F16ToF32(dBits)
	for k := range 32 {
		group := k / 2
		scale := d * float32(2*(scales[group/4]>>(3*(group%4))&7)+1)
		h := high[group] >> (4 * (k % 2))
		index := uint16(qs[k]) | uint16(h&7)<<8
		putIQ1(dst[8*k:], scale, gridIQ1S[index], iq1Shift(h&8 != 0))
	}
}
