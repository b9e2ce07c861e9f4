package ops

import (
	"fmt"
	"math"

	"ganglion/gpu/tensor"
)

// KVType is the element type of KV caches.
type KVType uint8

const (
	// KVF16 keeps keys and values as IEEE halves, rounded to nearest even.
	KVF16 KVType = iota
	// KVF32 keeps them as they are.
	KVF32
	// KVQ8 keeps blocks of KVBlock values of a head as signed bytes with one half
	// as their scale (QuantizeKV); the last block of a head may be shorter.
	KVQ8

	kvTypes
)

// KVTypes lists the names of all types, the default first.
func KVTypes() []string { return []string{"f16", "f32", "q8_0"} }

// ParseKVType finds a type by its name.
func ParseKVType(name string) (KVType, error) {
	for i, n := range KVTypes() {
		if n == name {
			return KVType(i), nil
		}
	}
	return 0, fmt.Errorf("ops: KV type %q: known are %v", name, KVTypes())
}

func (k KVType) String() string {
	if k < kvTypes {
		return KVTypes()[k]
	}
	return "unknown"
}

// KVBlock is the number of values that share a scale in KVQ8.
const KVBlock = 32

// Bytes is the size of one key or value head of n elements.
func (k KVType) Bytes(n int) int {
	switch k {
	case KVF32:
		return 4 * n
	case KVQ8:
		return n + 2*((n+KVBlock-1)/KVBlock)
	}
	return 2 * n
}

// QuantizeKV rounds one block of at most KVBlock values to signed bytes and returns
// its scale, a half: the value of q is float32(q)·scale. A NaN makes the scale NaN,
// so that it does not vanish.
func QuantizeKV(x []float32, q []int8) (scale uint16) {
	largest := uint32(0) // as bits: the order of magnitudes, NaN above all
	for _, v := range x {
		largest = max(largest, math.Float32bits(v)&0x7FFFFFFF)
	}
	scale = tensor.F32ToF16(float32(math.Float32frombits(largest) * (1.0 / 127)))
	inverse := float32(0)
	if d := tensor.F16ToF32(scale); d != 0 {
		inverse = Recip(d)
	}
	const magic = 12582912 // 1.5·2²³: adding it rounds to the nearest integer, ties to even
	for i, v := range x {
		s := min(max(float32(v*inverse), -127), 127)
		q[i] = int8(math.Float32bits(s+magic) - math.Float32bits(magic))
	}
	return scale
}
