package tensor

import "encoding/binary"

// The formats of 32 values with one scale. In the 4- and 5-bit ones byte j holds value
// j in its low nibble and value j+16 in its high nibble.

// decodeQ4_0: f16 d, 16 bytes of nibbles; x = d·(q−8).
func decodeQ4_0(dst []float32, src []byte) {
	d := half(src)
	for j, b := range src[2:18] {
		dst[j] = d * float32(int(b&15)-8)
		dst[j+16] = d * float32(int(b>>4)-8)
	}
}

// decodeQ4_1: f16 d, f16 m, 16 bytes of nibbles; x = d·q + m.
func decodeQ4_1(dst []float32, src []byte) {
	d, m := half(src), half(src[2:])
	for j, b := range src[4:20] {
		dst[j] = float32(d*float32(b&15)) + m
		dst[j+16] = float32(d*float32(b>>4)) + m
	}
}

// decodeQ5_0: f16 d, u32 fifth bits, 16 bytes of nibbles; x = d·(q−16).
func decodeQ5_0(dst []float32, src []byte) {
	d := half(src)
	high := binary.LittleEndian.Uint32(src[2:])
	for j, b := range src[6:22] {
		dst[j] = d * float32(int(fifth(b&15, high, j))-16)
		dst[j+16] = d * float32(int(fifth(b>>4, high, j+16))-16)
	}
}

// decodeQ5_1: f16 d, f16 m, u32 fifth bits, 16 bytes of nibbles; x = d·q + m.
func decodeQ5_1(dst []float32, src []byte) {
	d, m := half(src), half(src[2:])
	high := binary.LittleEndian.Uint32(src[4:])
	for j, b := range src[8:24] {
		dst[j] = float32(d*float32(fifth(b&15, high, j))) + m
		dst[j+16] = float32(d*float32(fifth(b>>4, high, j+16))) + m
	}
}

// fifth puts bit j of high above the nibble.
func fifth(nibble byte, high uint32, j int) byte { return nibble | byte(high>>j&1)<<4 }

// decodeQ8_0: f16 d, 32 signed bytes; x = d·q.
func decodeQ8_0(dst []float32, src []byte) {
	d := half(src)
	for j, b := range src[2:34] {
		dst[j] = d * float32(int8(b))
	}
}
