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

// smallestGroup is the least number of values that share a scale.
const smallestGroup = 16

// widen decodes one block: d·q, and + m where there is a minimum, each rounded.
func (l *layout) widen(dst []float32, src []byte) {
	var codes [superBlock]int8
	var scales, mins [superBlock / smallestGroup]float32
	l.decode(codes[:l.size], scales[:], mins[:], src)
	for g := range l.size / l.group {
		d, m := scales[g], mins[g]
		out := dst[g*l.group:][:l.group]
		for j, q := range codes[g*l.group:][:l.group] {
			out[j] = float32(d * float32(q))
		}
		if l.min {
			for j := range out {
				out[j] += m
			}
		}
	}
}

// Codes splits len(codes) values of type t exactly into whole numbers and what they are
// scaled with: value i is scales[i/g]·codes[i], and + mins[i/g] where the type has
// minima, for g = t.Group(). Each product is exact and so are scales and minima, which
// are products themselves in the K formats; only the sum is rounded by Dequantize. src
// must have exactly the bytes of those values; scales, and mins where the type has them,
// len(codes)/g elements. On an error nothing is written.
func Codes(t Type, codes []int8, scales, mins []float32, src []byte) error {
	l := t.layout()
	if l.group == 0 {
		return fmt.Errorf("tensor: %v has no codes", t)
	}
	want, err := RowBytes(t, len(codes))
	if err != nil {
		return err
	}
	groups := len(codes) / l.group
	if len(src) != want || len(scales) != groups || (l.min && len(mins) != groups) {
		return fmt.Errorf("tensor: %v: %d values are %d bytes and %d scales, got %d, %d and %d minima", t, len(codes), want, groups, len(src), len(scales), len(mins))
	}
	var none [superBlock / smallestGroup]float32
	for n := l.size / l.group; len(codes) > 0; codes, scales, src = codes[l.size:], scales[n:], src[l.bytes:] {
		m := none[:n]
		if l.min {
			m, mins = mins[:n:n], mins[n:]
		}
		l.decode(codes[:l.size:l.size], scales[:n:n], m, src[:l.bytes:l.bytes])
	}
	return nil
}

// half reads the binary16 at the start of b.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }
