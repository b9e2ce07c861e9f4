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
	// What follows is nil or zero for types without blocks; of those only F32, F16 and
	// BF16 are weights, see plain.
	group int  // values that share a scale
	min   bool // groups have a minimum, too
	// decode splits one block: codes has size values; scales, and mins where there are
	// any, one value per group; src has bytes bytes.
	decode func(codes []int8, scales, mins []float32, src []byte)
}

// layouts is indexed by Type; an empty name is an unknown type.
var layouts = [...]layout{
	F32:     {name: "F32", size: 1, bytes: 4}, // no blocks, Dequantize widens it itself
	F16:     {name: "F16", size: 1, bytes: 2},
	BF16:    {name: "BF16", size: 1, bytes: 2},
	Q4_0:    {"Q4_0", 32, 18, 32, false, decodeQ4_0},
	Q4_1:    {"Q4_1", 32, 20, 32, true, decodeQ4_1},
	Q5_0:    {"Q5_0", 32, 22, 32, false, decodeQ5_0},
	Q5_1:    {"Q5_1", 32, 24, 32, true, decodeQ5_1},
	Q8_0:    {"Q8_0", 32, 34, 32, false, decodeQ8_0},
	Q2_K:    {"Q2_K", superBlock, 84, 16, true, decodeQ2_K},
	Q3_K:    {"Q3_K", superBlock, 110, 16, false, decodeQ3_K},
	Q4_K:    {"Q4_K", superBlock, 144, 32, true, decodeQ4_K},
	Q5_K:    {"Q5_K", superBlock, 176, 32, true, decodeQ5_K},
	Q6_K:    {"Q6_K", superBlock, 210, 16, false, decodeQ6_K},
	IQ2_XXS: {"IQ2_XXS", superBlock, 66, 16, false, decodeIQ2_XXS},
	IQ2_XS:  {"IQ2_XS", superBlock, 74, 16, false, decodeIQ2_XS},
	IQ3_XXS: {"IQ3_XXS", superBlock, 98, 16, false, decodeIQ3_XXS},
	IQ1_S:   {"IQ1_S", superBlock, 50, 16, false, decodeIQ1_S},
	IQ4_NL:  {"IQ4_NL", 32, 18, 32, false, decodeIQ4_NL},
	IQ3_S:   {"IQ3_S", superBlock, 110, 16, false, decodeIQ3_S},
	IQ2_S:   {"IQ2_S", superBlock, 82, 16, false, decodeIQ2_S},
	IQ4_XS:  {"IQ4_XS", superBlock, 136, 32, false, decodeIQ4_XS},
	IQ1_M:   {"IQ1_M", superBlock, 56, 16, false, decodeIQ1_M},
	TQ1_0:   {"TQ1_0", superBlock, 54, 16, false, decodeTQ1_0},
	TQ2_0:   {"TQ2_0", superBlock, 66, 16, false, decodeTQ2_0},
	MXFP4:   {"MXFP4", 32, 17, 32, false, decodeMXFP4},
	NVFP4:   {"NVFP4", 64, 36, 16, false, decodeNVFP4},
	I8:      {name: "I8", size: 1, bytes: 1},
	I16:     {name: "I16", size: 1, bytes: 2},
	I32:     {name: "I32", size: 1, bytes: 4},
	I64:     {name: "I64", size: 1, bytes: 8},
	F64:     {name: "F64", size: 1, bytes: 8},
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
func (t Type) Dequantizable() bool { return t.plain() || t.Group() > 0 }

// Group returns the number of values that share a scale in a type of whole numbers, 32
// or 16: see Codes. It is 0 for all other types.
func (t Type) Group() int { return t.layout().group }

// HasMin reports whether the groups of a type have a minimum beside their scale.
func (t Type) HasMin() bool { return t.layout().min }

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
