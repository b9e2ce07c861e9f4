package tensor

import "encoding/binary"

// The formats of 32 values with one scale. In the 4- and 5-bit ones byte j holds value
// j in its low nibble and value j+16 in its high nibble.

// decodeQ4_0: f16 d, 16 bytes of nibbles; x = d·(q−8).
func decodeQ4_0(codes []int8, scales, _ []float32, src []byte) {
	scales[0] = half(src)
	for j, b := range src[2:18] {
		codes[j] = int8(b&15) - 8
		codes[j+16] = int8(b>>4) - 8
	}
}

// decodeQ4_1: f16 d, f16 m, 16 bytes of nibbles; x = d·q + m.
func decodeQ4_1(codes []int8, scales, mins []float32, src []byte) {
	scales[0], mins[0] = half(src), half(src[2:])
	for j, b := range src[4:20] {
		codes[j] = int8(b & 15)
		codes[j+16] = int8(b >> 4)
	}
}

// decodeQ5_0: f16 d, u32 fifth bits, 16 bytes of nibbles; x = d·(q−16).
func decodeQ5_0(codes []int8, scales, _ []float32, src []byte) {
	scales[0] = half(src)
	fifths(codes, src[6:22], binary.LittleEndian.Uint32(src[2:]))
	for j := range codes {
		codes[j] -= 16
	}
}

// decodeQ5_1: f16 d, f16 m, u32 fifth bits, 16 bytes of nibbles; x = d·q + m.
func decodeQ5_1(codes []int8, scales, mins []float32, src []byte) {
	scales[0], mins[0] = half(src), half(src[2:])
	fifths(codes, src[8:24], binary.LittleEndian.Uint32(src[4:]))
}

// fifths puts bit j of high above the nibble of value j.
func fifths(codes []int8, nibbles []byte, high uint32) {
	for j, b := range nibbles {
		codes[j] = int8(b&15 | byte(high>>j&1)<<4)
		codes[j+16] = int8(b>>4 | byte(high>>(j+16)&1)<<4)
	}
}

// decodeQ8_0: f16 d, 32 signed bytes; x = d·q.
func decodeQ8_0(codes []int8, scales, _ []float32, src []byte) {
	scales[0] = half(src)
	for j, b := range src[2:34] {
		codes[j] = int8(b)
	}
}
