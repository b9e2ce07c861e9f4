package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Dequantize widens len(dst) values of type t from src to float32, exactly. src must
// have exactly the bytes of those values, so len(dst) is a multiple of the block size.
// On an error dst is untouched. dst and src must not overlap.
func Dequantize(t Type, dst []float32, src []byte) error {
	if !t.Dequantizable() {
		return fmt.Errorf("tensor: %v cannot be dequantised, supported types are %v", t, Types())
	}
	want, err := RowBytes(t, len(dst))
	if err != nil {
		return err
	}
	if len(src) != want {
		return fmt.Errorf("tensor: %v: %d values are %d bytes, got %d", t, len(dst), want, len(src))
	}
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	default:
		l := t.layout()
		for len(dst) > 0 {
			l.decode(dst[:l.size:l.size], src[:l.bytes:l.bytes])
			dst, src = dst[l.size:], src[l.bytes:]
		}
	}
	return nil
}

// half reads the binary16 at the start of b.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }
