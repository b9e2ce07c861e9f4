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
			l.widen(dst[:l.size:l.size], src[:l.bytes:l.bytes])
			dst, src = dst[l.size:], src[l.bytes:]
		}
	}
	return nil
}

// codeGroup is the number of values that share a scale of Codes.
const codeGroup = 16

// widen decodes one block.
func (l *layout) widen(dst []float32, src []byte) {
	if l.codes == nil {
		l.decode(dst, src)
		return
	}
	var codes [superBlock]int8
	var scales [superBlock / codeGroup]float32
	l.codes(codes[:l.size], scales[:l.size/codeGroup], src)
	for i := range dst {
		dst[i] = scales[i/codeGroup] * float32(codes[i])
	}
}

// HasCodes reports whether Codes takes the type: IQ1, IQ2, IQ3, TQ and NVFP4.
func (t Type) HasCodes() bool { return t.layout().codes != nil }

// Codes splits len(codes) values of type t exactly into signed bytes and a scale for
// each 16 of them: value i is scales[i/16]·codes[i], a product without rounding. src
// must have exactly the bytes of those values and scales a sixteenth of their number.
// It is for kernels that have no decoder of their own for such a type.
func Codes(t Type, codes []int8, scales []float32, src []byte) error {
	if !t.HasCodes() {
		return fmt.Errorf("tensor: %v has no codes", t)
	}
	want, err := RowBytes(t, len(codes))
	if err != nil {
		return err
	}
	if len(src) != want || len(scales) != len(codes)/codeGroup {
		return fmt.Errorf("tensor: %v: %d values are %d bytes and %d scales, got %d and %d", t, len(codes), want, len(codes)/codeGroup, len(src), len(scales))
	}
	l := t.layout()
	for len(codes) > 0 {
		l.codes(codes[:l.size:l.size], scales[:l.size/codeGroup:l.size/codeGroup], src[:l.bytes:l.bytes])
		codes, scales, src = codes[l.size:], scales[l.size/codeGroup:], src[l.bytes:]
	}
	return nil
}

// half reads the binary16 at the start of b.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }
