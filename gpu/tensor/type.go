package tensor

import (
	"fmt"
	"math"
)

// Type is the number GGUF gives an element type.
type Type uint32

// The element types a GGUF tensor can have. The numbers are GGUF's; the gaps are
// types that were withdrawn or that never stand in a file.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
)

// superBlock is the number of values in a block of the K, IQ and TQ formats (QK_K).
const superBlock = 256

// layout describes one element type.
type layout struct {
	name  string
	size  int // values per block
	bytes int // bytes per block
	// decode widens one block; dst has size values and src bytes bytes. It is nil for
	// types without blocks; of those only F32, F16 and BF16 are weights, see plain.
	decode func(dst []float32, src []byte)
	// codes, in place of decode, gives a block whose values are a signed byte times a
	// float32 scale for each 16 of them; every such product is exact.
	codes func(codes []int8, scales []float32, src []byte)
}

// layouts is indexed by Type; an empty name is an unknown type.
var layouts = [...]layout{
	F32:     {"F32", 1, 4, nil, nil}, // no blocks, Dequantize widens it itself
	F16:     {"F16", 1, 2, nil, nil},
	BF16:    {"BF16", 1, 2, nil, nil},
	Q4_0:    {"Q4_0", 32, 18, decodeQ4_0, nil},
	Q4_1:    {"Q4_1", 32, 20, decodeQ4_1, nil},
	Q5_0:    {"Q5_0", 32, 22, decodeQ5_0, nil},
	Q5_1:    {"Q5_1", 32, 24, decodeQ5_1, nil},
	Q8_0:    {"Q8_0", 32, 34, decodeQ8_0, nil},
	Q2_K:    {"Q2_K", superBlock, 84, decodeQ2_K, nil},
	Q3_K:    {"Q3_K", superBlock, 110, decodeQ3_K, nil},
	Q4_K:    {"Q4_K", superBlock, 144, decodeQ4_K, nil},
	Q5_K:    {"Q5_K", superBlock, 176, decodeQ5_K, nil},
	Q6_K:    {"Q6_K", superBlock, 210, decodeQ6_K, nil},
	IQ2_XXS: {"IQ2_XXS", superBlock, 66, nil, decodeIQ2_XXS},
	IQ2_XS:  {"IQ2_XS", superBlock, 74, nil, decodeIQ2_XS},
	IQ3_XXS: {"IQ3_XXS", superBlock, 98, nil, decodeIQ3_XXS},
	IQ1_S:   {"IQ1_S", superBlock, 50, nil, decodeIQ1_S},
	IQ4_NL:  {"IQ4_NL", 32, 18, decodeIQ4_NL, nil},
	IQ3_S:   {"IQ3_S", superBlock, 110, nil, decodeIQ3_S},
	IQ2_S:   {"IQ2_S", superBlock, 82, nil, decodeIQ2_S},
	IQ4_XS:  {"IQ4_XS", superBlock, 136, decodeIQ4_XS, nil},
	IQ1_M:   {"IQ1_M", superBlock, 56, nil, decodeIQ1_M},
	TQ1_0:   {"TQ1_0", superBlock, 54, nil, decodeTQ1_0},
	TQ2_0:   {"TQ2_0", superBlock, 66, nil, decodeTQ2_0},
	MXFP4:   {"MXFP4", 32, 17, decodeMXFP4, nil},
	NVFP4:   {"NVFP4", 64, 36, nil, decodeNVFP4},
	I8:      {"I8", 1, 1, nil, nil},
	I16:     {"I16", 1, 2, nil, nil},
	I32:     {"I32", 1, 4, nil, nil},
	I64:     {"I64", 1, 8, nil, nil},
	F64:     {"F64", 1, 8, nil, nil},
}

func (t Type) layout() layout {
	if int64(t) >= int64(len(layouts)) {
		return layout{}
	}
	return layouts[t]
}

// String returns the name of the type as the field writes it, such as "Q4_K", or
// "type 99" for an unknown number.
func (t Type) String() string {
	if l := t.layout(); l.name != "" {
		return l.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// BlockSize returns the number of values in a block, 0 for an unknown type.
func (t Type) BlockSize() int { return t.layout().size }

// BlockBytes returns the number of bytes of a block, 0 for an unknown type.
func (t Type) BlockBytes() int { return t.layout().bytes }

// Known reports whether a tensor of a file can have this type. A known type need not
// be a weight type: see Dequantizable.
func (t Type) Known() bool { return t.layout().name != "" }

// Dequantizable reports whether Dequantize can widen the type to float32: it holds
// for every weight type, not for integers and F64.
func (t Type) Dequantizable() bool { return t.plain() || t.layout().decode != nil || t.HasCodes() }

// plain reports whether the type holds one float per element, without blocks.
func (t Type) plain() bool { return t == F32 || t == F16 || t == BF16 }

// Types returns the types that Dequantize takes, in the order of their numbers. The
// caller owns the slice.
func Types() []Type {
	var types []Type
	for i := range layouts {
		if t := Type(i); t.Dequantizable() {
			types = append(types, t)
		}
	}
	return types
}

// RowBytes returns the number of bytes of n values that stand in one row. n must be a
// multiple of the block size.
func RowBytes(t Type, n int) (int, error) {
	l := t.layout()
	switch {
	case l.name == "":
		return 0, fmt.Errorf("tensor: unknown %v", t)
	case n < 0 || n%l.size != 0:
		return 0, fmt.Errorf("tensor: %v: a row of %d values is not a multiple of the block of %d", t, n, l.size)
	case n/l.size > math.MaxInt/l.bytes:
		return 0, fmt.Errorf("tensor: %v: a row of %d values is too long", t, n)
	}
	return n / l.size * l.bytes, nil
}
